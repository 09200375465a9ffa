import { describe, expect, it } from 'vitest';
import { DataError } from './data_source';
import { HttpSource, queryString, type Events } from './http_source';
import { encodeSlab } from './slab_writer';

const BASE = 'http://127.0.0.1:5/token/';

function answering(answer: (url: URL) => Response): { source: HttpSource; asked: string[] } {
  const asked: string[] = [];
  const source = new HttpSource(BASE, (input) => {
    const url = new URL(input instanceof Request ? input.url : input);
    asked.push(url.href);
    return Promise.resolve(answer(url));
  });
  return { source, asked };
}

describe('queryString', () => {
  it('flattens a filter without and another moment with its name', () => {
    const filter = { text: 'a&b', category: '', stack: null, min_size: 4 };
    expect(queryString({ file: 0, filter, other: { file: 1, to: 9 }, inverted: false })).toBe(
      '?file=0&text=a%26b&min_size=4&other_file=1&other_to=9&inverted=false',
    );
  });
  it('leaves out what is not set', () => expect(queryString({ other: null, text: '' })).toBe(''));
});

describe('HttpSource', () => {
  it('asks below its own address only', async () => {
    const { source, asked } = answering(() => Response.json([]));
    await source.stacks(0, [1, 2]);
    expect(asked).toEqual([`${BASE}api/stacks?file=0&ids=1%2C2`]);
  });
  it('asks for many stacks in portions and keeps their order', async () => {
    const { source, asked } = answering((url) => Response.json((url.searchParams.get('ids') ?? '').split(',').map((id) => ({ stack: Number(id) }))));
    const ids = Array.from({ length: 1200 }, (_, i) => i);
    expect((await source.stacks(0, ids)).map((each) => each.stack)).toEqual(ids);
    expect(asked.length).toBe(3);
  });
  it('reads slabs', async () => {
    const slab = encodeSlab('curve', {}, new Map<string, Uint32Array | Float64Array>([['event', Uint32Array.of(4)], ['ns', Float64Array.of(1)]]));
    const { source } = answering(() => new Response(slab));
    expect((await source.curve({ file: 0, lane: 0, axis: 'event', from: 0, to: 1, columns: 1 })).event[0]).toBe(4);
  });
  it('passes the sentence of a refusal on', async () => {
    const { source } = answering(() => Response.json({ error: 'No lane 9.' }, { status: 404 }));
    await expect(source.block(0, 1)).rejects.toEqual(new DataError('No lane 9.'));
  });
  it('has a sentence for a refusal without one', async () => {
    const { source } = answering(() => new Response('<html>', { status: 500 }));
    await expect(source.block(0, 1)).rejects.toThrow(/answered 500/);
  });
  it('says how to go on when the server is gone', async () => {
    const source = new HttpSource(BASE, () => Promise.reject(new TypeError('Failed to fetch')));
    await expect(source.block(0, 1)).rejects.toThrow(/Start it again/);
  });
  it('lets an abort be one', async () => {
    const source = new HttpSource(BASE, () => Promise.reject(new DOMException('', 'AbortError')));
    await expect(source.block(0, 1)).rejects.toHaveProperty('name', 'AbortError');
  });
  it('refuses a server of another time', async () => {
    const { source } = answering(() => Response.json({ protocol: 99 }));
    await expect(source.meta()).rejects.toThrow(/version 99/);
  });
  it('has one connection for all who watch the progress, and keeps it', () => {
    const events: Events = { onmessage: null };
    const opened: string[] = [];
    const open = (url: string): Events => {
      opened.push(url);
      return events;
    };
    const source = new HttpSource(BASE, () => Promise.reject(new Error()), open);
    const seen: string[] = [];
    const watch = (name: string): (() => void) => source.watchProgress((progress) => seen.push(`${name} ${progress.files[0]!.state}`));
    const tell = (state: string): void => events.onmessage?.({ data: JSON.stringify({ files: [{ state }] }) } as MessageEvent<string>);
    const stop = watch('a');
    tell('loading');
    watch('b');
    stop();
    tell('ready');
    expect(opened).toEqual([`${BASE}api/alive`]);
    expect(seen).toEqual(['a loading', 'b loading', 'b ready']);
  });
});
