import { describe, expect, it, vi } from 'vitest';
import { activity } from '../base/activity';
import { DataError } from './data_source';
import { HttpSource, queryString } from './http_source';
import type { Filter, FlameQuery, Meta } from './protocol';
import type { Events } from './shared_events';
import { encodeSlab } from '../testing/slab_writer';

const NO_FILTER: Filter = { text: '', category: '', stack: null, forward_stack: null, key: null, stream: '', thread: '', min_size: null, max_size: null };
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
  it('flattens a filter without its name, and another moment with it', () => {
    const filter = { text: 'a&b', category: '', stack: null, min_size: 4 };
    expect(queryString({ file: 0, filter, other: { file: 1, to: 9 }, inverted: false })).toBe(
      '?file=0&text=a%26b&min_size=4&other_file=1&other_to=9&inverted=false',
    );
  });
  it('flattens boxes in ranges', () => {
    expect(queryString({ from: 1, box: null, other: { from: 3, to: 5, box: { axis: 'event', low: 0 } } })).toBe('?from=1&other_from=3&other_to=5&other_box_axis=event&other_box_low=0');
  });
  it('leaves out unset values', () => expect(queryString({ other: null, text: '' })).toBe(''));
});

describe('HttpSource', () => {
  it('requests only addresses below its own', async () => {
    const { source, asked } = answering(() => Response.json([]));
    await source.stacks(0, [1, 2]);
    expect(asked).toEqual([`${BASE}api/stacks?file=0&ids=1%2C2`]);
  });
  it('keeps the page busy until the answer has come', async () => {
    let answer: (response: Response) => void = () => undefined;
    const source = new HttpSource(BASE, () => new Promise((resolve) => (answer = resolve)));
    const asked = source.stacks(0, [1]);
    expect(activity.busy()).toBe(true);
    answer(Response.json([]));
    await asked;
    expect(activity.busy()).toBe(false);
  });
  it('asks for many stacks in batches and keeps their order', async () => {
    const { source, asked } = answering((url) => Response.json((url.searchParams.get('ids') ?? '').split(',').map((id) => ({ stack: Number(id) }))));
    const ids = Array.from({ length: 1200 }, (_, i) => i);
    expect((await source.stacks(0, ids)).map((each) => each.stack)).toEqual(ids);
    expect(asked.length).toBe(3);
  });
  it('reads slabs', async () => {
    const slab = encodeSlab('curve', {}, new Map<string, Uint32Array | Float64Array>([['event', Uint32Array.of(4)], ['peak', Uint32Array.of(4)], ['ns', Float64Array.of(1)]]));
    const { source } = answering(() => new Response(slab));
    expect((await source.curve({ file: 0, lane: 0, axis: 'event', from: 0, to: 1, columns: 1 })).event[0]).toBe(4);
  });
  it('asks nothing with a filter that is no expression', async () => {
    const { source, asked } = answering(() => Response.json({}));
    const scope = { file: 0, lane: 0, of: 'live', from: 0, to: 1 } as const;
    await expect(source.find({ ...scope, filter: { ...NO_FILTER, text: '/(/' } }, 0, 1)).rejects.toThrow('Not a regular expression');
    expect(asked).toEqual([]);
  });
  it('asks for what matches a filter together with its window', async () => {
    const { source, asked } = answering(() => new Response(encodeSlab('passing', {}, new Map([['live', Float64Array.of(7)]]))));
    const query = { file: 0, lane: 1, axis: 'event', from: 0, to: 1, columns: 1, filter: { ...NO_FILTER, text: 'f', min_size: 0 } } as const;
    expect(await source.passing(query)).toEqual({ query, live: Float64Array.of(7) });
    expect(asked).toEqual([`${BASE}api/passing?file=0&lane=1&axis=event&from=0&to=1&columns=1&text=f&min_size=0`]);
  });
  it('names the window of a live recording in its questions', async () => {
    const { source, asked } = answering(() => Response.json({ row: 7 }));
    const live = { generation: 3, window: 2, first_window: 0, names: 0, begin_ns: 0, dropped_events: 9 };
    source.useWindows({ protocol: 1, version: '', origin: 'server', files: [{ file: 1, live }] } as unknown as Meta);
    await source.block(0, 4);
    await source.block(1, 4);
    await expect(source.passing({ file: 1, lane: 0, axis: 'event', from: 0, to: 1, columns: 1, filter: NO_FILTER })).rejects.toThrow();
    expect(await source.moved(1, 1, 2, 4)).toBe(7);
    expect(asked).toEqual([`${BASE}api/block?file=0&row=4`, `${BASE}api/block?file=1&row=4&window=2`,
      `${BASE}api/passing?file=1&lane=0&axis=event&from=0&to=1&columns=1&window=2`, `${BASE}api/moved?file=1&from=1&to=2&row=4`]);
  });
  it('names the window of the other side of a comparison', async () => {
    const { source, asked } = answering(() => new Response(new Uint8Array(1)));
    const live = { generation: 3, window: 2, first_window: 0, names: 0, begin_ns: 0, dropped_events: 9 };
    source.useWindows({ protocol: 1, version: '', origin: 'server', files: [{ file: 1, live }] } as unknown as Meta);
    await expect(source.flame({ file: 0, other: { file: 1, lane: 0, to: 9 } } as unknown as FlameQuery)).rejects.toThrow();
    expect(asked).toEqual([`${BASE}api/flame?file=0&other_file=1&other_lane=0&other_to=9&other_window=2`]);
  });
  it('passes on the error text of the server', async () => {
    const { source } = answering(() => Response.json({ error: 'No lane 9.' }, { status: 404 }));
    await expect(source.block(0, 1)).rejects.toEqual(new DataError('No lane 9.'));
  });
  it('has an error text for a response without one', async () => {
    const { source } = answering(() => new Response('<html>', { status: 500 }));
    await expect(source.block(0, 1)).rejects.toThrow(/answered 500/);
  });
  it('says what to do when the server is gone', async () => {
    const source = new HttpSource(BASE, () => Promise.reject(new TypeError('Failed to fetch')));
    await expect(source.block(0, 1)).rejects.toThrow(/Start it again/);
  });
  it('passes on an abort', async () => {
    const source = new HttpSource(BASE, () => Promise.reject(new DOMException('', 'AbortError')));
    await expect(source.block(0, 1)).rejects.toHaveProperty('name', 'AbortError');
  });
  it('rejects a server of another version', async () => {
    const { source } = answering(() => Response.json({ protocol: 99 }));
    await expect(source.meta()).rejects.toThrow(/version 99/);
  });
  it('has one connection for all watchers of the progress, and keeps it', () => {
    const events: Events = { onmessage: null, onerror: null };
    const opened: string[] = [];
    const open = (url: string): Events => {
      opened.push(url);
      return events;
    };
    const source = new HttpSource(BASE, () => Promise.reject(new Error()), open);
    const seen: string[] = [];
    const watch = (name: string): (() => void) => source.watchProgress((progress) => seen.push(`${name} ${progress.files[0]!.state}`));
    const emit = (state: string): void => events.onmessage?.({ data: JSON.stringify({ files: [{ state }] }) } as MessageEvent<string>);
    const stop = watch('a');
    emit('loading');
    watch('b');
    stop();
    emit('ready');
    expect(opened).toEqual([`${BASE}api/alive`]);
    expect(seen).toEqual(['a loading', 'b loading', 'b ready']);
  });
  it('reports a connection that breaks, or that is silent about a running process', () => {
    vi.useFakeTimers();
    const events: Events = { onmessage: null, onerror: null };
    const source = new HttpSource(BASE, () => Promise.reject(new Error()), () => events);
    const seen: string[] = [];
    source.watchProgress(() => seen.push('here'), () => seen.push('lost'));
    const emit = (file: object): void => events.onmessage?.({ data: JSON.stringify({ files: [file] }) } as MessageEvent<string>);
    emit({ state: 'ready' });
    vi.advanceTimersByTime(1e6);
    expect(seen).toEqual(['here']);
    events.onerror?.(new Event('error'));
    emit({ state: 'ready', live: { state: 'following' } });
    expect(seen.splice(0)).toEqual(['here', 'lost', 'here']);
    vi.advanceTimersByTime(1e6);
    emit({ state: 'ready', live: { state: 'ended' } });
    vi.advanceTimersByTime(1e6);
    expect(seen).toEqual(['lost', 'here']);
    vi.useRealTimers();
  });
});
