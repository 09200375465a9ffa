import { beforeEach, describe, expect, it } from 'vitest';
import type { FileMeta } from '../data/protocol';
import { domainOf, Navigator } from '../state/navigator';
import { Store } from '../state/store';
import { recordedSource } from '../testing/recordings';
import { askedEntries, idEntries, momentEntries, type Places } from './search_entries';

const { signal } = new AbortController();

describe('the palette', () => {
  let places: Places;
  let file: FileMeta;
  beforeEach(async () => {
    const source = recordedSource();
    const store = new Store();
    const meta = await source.meta();
    file = meta.files[0]!;
    store.update({ meta, range: domainOf(file, 'event'), rangeEvents: { from: 0, to: file.events } });
    places = { source, store, navigator: new Navigator(store, source) };
  });
  const titles = (query: string, entries = idEntries): string[] => entries(query, places).map(({ kind, title }) => `${kind}: ${title}`);

  it('goes to steps, events, stacks and blocks by their ids', async () => {
    expect(titles('2')).toEqual(['step: step 2', 'event: after event 2']);
    expect([titles('step/2'), titles('Event 2'), titles('stack/7'), titles('block/12')].flat()).toEqual(['step: step 2', 'event: after event 2', 'stack: stack/7', 'block: block/12']);
    expect(titles('step/999999')).toEqual([]);
    idEntries('stack/7', places)[0]!.run();
    expect(places.store.get().selection).toEqual({ kind: 'stack', stack: 7 });
    idEntries('event/5', places)[0]!.run();
    await Promise.resolve();
    expect(places.store.get().cursor).toBe(5);
  });

  it('goes to marks and other moments by their names', () => {
    const withMark = { ...file, marks: [{ name: 'Epoch 3', event: 9, ns: 0 }] };
    places.store.update((old) => ({ meta: { ...old.meta!, files: [withMark] } }));
    expect(titles('epoch', momentEntries)).toEqual(['mark: Epoch 3, event 9']);
    momentEntries('epoch', places)[0]!.run();
    expect(places.store.get().selection).toEqual({ kind: 'instant', event: 9 });
  });

  it('filters by functions, lines and modules that it finds', async () => {
    const found = await askedEntries('forward', places, signal);
    expect(found.length).toBeGreaterThan(0);
    for (const { kind, title } of found) {
      expect(['function', 'line', 'module']).toContain(kind);
      expect(title.toLowerCase()).toContain('forward');
    }
    found[0]!.run();
    expect(places.store.get().filter.text).toContain('forward');
    expect(await askedEntries('no such function', places, signal)).toEqual([]);
    await expect(askedEntries('/(/', places, signal)).rejects.toThrow('Not a regular expression');
  });

  it('selects a block by an address in it', async () => {
    const { rows } = await places.source.find({ file: 0, lane: 0, filter: places.store.get().filter, of: 'live', from: 0, to: file.lanes[0]!.peak_event }, 0xffffffff, 1, signal);
    const { address, size } = await places.source.block(0, rows[0]!);
    const inside = `0x${(BigInt(address) + BigInt(size - 1)).toString(16)}`;
    const found = await askedEntries(inside, places, signal);
    expect(found.every(({ kind }) => kind === 'address')).toBe(true);
    found[0]!.run();
    expect(places.store.get().selection.kind).toBe('block');
    const { selection } = places.store.get();
    if (selection.kind === 'block') {
      const block = await places.source.block(0, selection.row);
      expect(BigInt(inside) - BigInt(block.address)).toBeLessThan(BigInt(block.size));
    }
  });
});
