import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { archiveFrom } from './embedded/archive';
import { EmbeddedSource } from './embedded_source';
import type { FileMeta, Filter, Meta, Scope } from './protocol';
import { recordedSource } from '../testing/recordings';
import { encodeSlab } from '../testing/slab_writer';

const NO_FILTER: Filter = { text: '', category: '', stack: null, forward_stack: null, key: null, stream: '', thread: '', min_size: null, max_size: null };

// As viewer/html/varint_columns.h writes them.
function varints(values: readonly number[]): Uint8Array {
  const bytes: number[] = [];
  for (let value of values) {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    bytes.push(value);
  }
  return Uint8Array.from(bytes);
}

function deltas(values: readonly number[]): Uint8Array {
  return varints(values.map((value, i) => value - (values[i - 1] ?? 0)).map((d) => (d < 0 ? -2 * d - 1 : 2 * d)));
}

const base64 = (bytes: Uint8Array | string): string[] => [gzipSync(bytes).toString('base64')];
const json = (value: unknown): string[] => base64(JSON.stringify(value));

// Events: 1 A born (stack 1, 1000 B), 2 B born (stack 2, 300 B), 3 A dies, 4 C born (like A), end.
// A small block of 10 B lives from event 2 on and is not in the file.
function source(omitted: boolean): EmbeddedSource {
  const arrays = {
    row: deltas([0, 1, 3]),
    birth: deltas([1, 2, 4]),
    life: varints([2, 0, 0]),
    'wait.block': deltas([0]),
    'wait.events': varints([2]), // A could be used again after event 4
    'wait.ns': varints([91]), // 1 more than the 90 ns after its death
    'mapped.block': deltas([]),
    'mapped.place': varints([]),
    kind: varints([0, 0, 1]),
    space: varints([1, 1, 1]),
    offset: deltas([0, 4096, 0]),
    'kind.size': varints([1000, 300]),
    'kind.rounding': varints([0, 89]), // 300 minus 44
    'kind.stack': varints([1, 2]),
    'kind.forward': varints([0, 0]),
    'kind.free': varints([0, 0]),
    'kind.category': varints([1, 0]),
    'kind.confidence': varints([2, 0]),
    'kind.reason': varints([0, 0]),
    'kind.stream': varints([1, 0]),
    'kind.thread': varints([0, 0]),
    'kind.pool': varints([0, 0]),
    'kind.name': varints([0, 0]),
    'kind.tensor': varints([1, 0]),
    'kind.alive': varints([0, 1]),
    'driver_used.event': deltas([1, 1, 3]),
    'driver_used.ns': deltas([120, 180, 310]),
    'driver_used.value': deltas([5000, 6000, 6000]),
    border: deltas(omitted ? [0, 2, 4] : []),
    'omitted.bytes': deltas(omitted ? [0, 0, 0, 0, 10, 10] : []), // category 1
    'omitted.blocks': deltas(omitted ? [0, 1, 1] : []),
    'total.min': deltas(omitted ? [0, 310, 1310] : []),
    'total.max': deltas(omitted ? [1000, 1310, 1310] : []),
    'total.peak': deltas(omitted ? [1, 2, 4] : []),
  };
  const fields = {
    blocks: 3, waits: 1, mapped: 0, kinds: 2, borders: omitted ? 3 : 0, codes: omitted ? 2 : 0, pools: [], tensors: ['float32 [8, 4]'], alives: ['a parameter'], 'driver_used.count': 3,
    spaces: [{ place: 0, size: 1 << 20, address: '0x7f0000000000', label: 'large', lives: [[1, null]] }],
    omitted: omitted ? [{ event: 4, entries: [[2, 0, 1, 10, 1]] }] : [],
  };
  const lane = encodeSlab('lane', fields, new Map(Object.entries(arrays)));
  const clock = encodeSlab('clock', { events: 4, points: 2 }, new Map([['event', deltas([0, 4])], ['ns', deltas([0, 400])]]));
  const frame = (name: string, line: number): readonly [string, string, number, string, number] => [name, '/src/train.py', line, '', 2];
  const stacks = {
    frames: [frame('forward', 41), frame('main', 9), frame('load', 5)],
    ids: [1, 2], keys: [77, 78], labels: ['forward (train.py:41)', 'recomputed: load (train.py:5)'], sites: ['forward (train.py)', 'load (train.py)'],
    lines: ['forward (train.py:41)', 'load (train.py:5)'], backward_of: ['backward of ', 'recomputed for backward of '], stacks: [[0, 1], [2, 1]],
    own: [['forward (train.py)', '/src/train.py', 'train.py:41', true], ['load (train.py)', '/src/train.py', 'train.py:5', true]],
  };
  const parts = new Map<string, readonly string[]>([
    ['meta', json({ protocol: 1, version: '1', origin: 'file', files: [META] } satisfies Meta)],
    ['0/lane/0', base64(new Uint8Array(lane))],
    ['0/clock', base64(new Uint8Array(clock))],
    ['0/stacks', json(stacks)],
    ['0/texts', json({ names: {}, reasons: ['a guess'], confidences: ['low', 'medium', 'high'] })],
    ['0/answers', json({ oom: { headline: 'no', text: 'no\n', json: {} } })],
    ['0/segments', json({ '0': [['0x7f0000000000', 1 << 20, 0, 0xffffffff, 0, null, null, 2]] })],
    ['0/sources', json({})],
    ['0/predictions', json({ '0': { 'a:1': { events: [0, 1, 0, 2], bytes: [0, 40, -10, 30], peak_bytes: 60, retries: 1, failure: 3 }, 'b:2': { why: 'no replay' } } })],
  ]);
  return new EmbeddedSource(archiveFrom(new Map(parts)));
}

const META: FileMeta = {
  file: 0, name: 'run.gmt', path: 'run.gmt', imported_from: '', pid: 1, rank: null, argv: [], start_unix_ns: '0', end_ns: 400, events: 4,
  lanes: [{ lane: 0, device: 0, heap: 'pytorch', label: 'GPU 0', blocks: 3, peak_bytes: 1310, peak_event: 2, end_bytes: 1310, peak_reserved_bytes: null, capacity_bytes: null, has_segments: true, sites: [], series: ['live', 'driver_used'] }],
  categories: ['unknown', 'activations'], streams: ['unknown', '0x7f00'], threads: ['unknown'],
  roles: ['unknown', 'a parameter'], dtypes: ['unknown', 'float32'],
  steps: { source: '', inferred: false, begin: [], end: [], begin_ns: [], end_ns: [] },
  phases: [], ranges: [], marks: [], snapshots: [], ooms: [], retries: [], losses: [], lacks: [], omitted: null,
};

const scope = (change: Partial<Scope>): Scope => ({ file: 0, lane: 0, filter: NO_FILTER, of: 'live', from: 0, to: 4, ...change });

describe('EmbeddedSource', () => {
  it('includes what the file left out in curves', async () => {
    const window = { file: 0, lane: 0, axis: 'event', from: 0, to: 5, columns: 5 } as const;
    expect([...(await source(false).curve(window)).series.get('live')!.mid]).toEqual([0, 1000, 1300, 300, 1300]);
    const tile = await source(true).curve(window);
    expect([...tile.series.get('live')!.mid]).toEqual([0, 1000, 1310, 310, 1310]);
    expect([...tile.categories]).toEqual([0, 0, 300, 300, 300, 0, 1000, 1010, 10, 1010]);
    expect([...tile.ns]).toEqual([0, 100, 200, 300, 400]);
  });

  it('has the last sample of each column, on the axis of time by its own time', async () => {
    const samples = async (axis: 'event' | 'time', to: number): Promise<number[][]> => {
      const { value, ns } = (await source(false).curve({ file: 0, lane: 0, axis, from: 0, to, columns: 5 })).samples.get('driver_used')!;
      return [[...value], [...ns]];
    };
    expect(await samples('event', 5)).toEqual([[NaN, 6000, 6000, 6000, 6000], [NaN, 180, 180, 310, 310]]);
    expect(await samples('time', 375)).toEqual([[NaN, 5000, 6000, 6000, 6000], [NaN, 120, 180, 180, 310]]);
  });

  it('returns what matches a filter among the blocks in the file', async () => {
    const window = { file: 0, lane: 0, axis: 'event', from: -1, to: 6, columns: 7 } as const;
    const passing = async (change: Partial<Filter>): Promise<number[]> => [...(await source(true).passing({ ...window, filter: { ...NO_FILTER, ...change } })).live];
    expect(await passing({})).toEqual([NaN, 0, 1000, 1310, 310, 1310, NaN]);
    expect(await passing({ category: 'activations' })).toEqual([NaN, 0, 1000, 1000, 0, 1000, NaN]);
    expect(await passing({ text: '0x7f0000001000' })).toEqual([NaN, 0, 0, 300, 300, 300, NaN]);
    expect(await passing({ min_size: 5000 })).toEqual([NaN, 0, 0, 0, 0, 0, NaN]);
    await expect(passing({ text: '/(/' })).rejects.toThrow('Not a regular expression');
  });

  it('has the replays with the settings that are in the file, until a request would fail', async () => {
    const predicted = (settings: string) => source(false).predicted({ file: 0, lane: 0, axis: 'event', from: -1, to: 6, columns: 7, settings });
    const { reserved, peak_bytes, retries, failure } = await predicted('a:1');
    expect([...reserved]).toEqual([NaN, 0, 40, 30, 60, NaN, NaN]);
    expect([peak_bytes, retries, failure]).toEqual([60, 1, 3]);
    await expect(predicted('b:2')).rejects.toThrow('no replay');
    await expect(predicted('c:3')).rejects.toThrow('this file has only a:1, b:2');
  });

  it('stacks the blocks that live longest at the bottom', async () => {
    const tile = await source(false).blocks({ file: 0, lane: 0, axis: 'event', from: 0, to: 5, columns: 5, layout: 'stacked', low: 0, high: 2000, rows: 200 });
    expect([...tile.row]).toEqual([0, 1, 3]);
    expect([...tile.end]).toEqual([3, Infinity, Infinity]);
    expect([...tile.key]).toEqual([77, 78, 77]);
    expect(tile.hidden).toBe(0);
  });

  it('has table rows that add up to the total, including left out blocks', async () => {
    const table = await source(true).table({ ...scope({}), by: 'stack', sort: 'bytes', descending: true, offset: 0, limit: 10, sparkline: 0 });
    expect(table.rows.map((row) => [row.id, row.bytes])).toEqual([['stack/1', 1000], ['stack/2', 300], ['omitted', 10]]);
    expect(table.total_bytes).toBe(1310);
  });

  it('breaks a range down, and counts what was left out at its peak', async () => {
    const query = { file: 0, lane: 0, filter: NO_FILTER, from: 2, to: 4, box: null, other: null, within: [], by: 'function', folded: false, sort: 'inclusive', side: 'this', descending: true, offset: 0, limit: 10 } as const;
    const table = await source(true).range(query);
    // A is held from 200 to 300 ns, and born again at 400; B is held all the time.
    expect(table.rows.map((row) => [row.id, row.bytes, row.inclusive, row.allocations, row.growth])).toEqual([
      ['function/main (train.py)', 0, 1300, 0, 0],
      ['function/forward (train.py)', 1000, 1000, 1, 0],
      ['function/load (train.py)', 300, 300, 0, 0],
      ['omitted', 10, 10, 0, 0],
    ]);
    expect(table.rows.map((row) => Math.round(row.byte_seconds * 1e9))).toEqual([0, 100_000, 60_000, 0]);
    expect(table).toMatchObject({ peak_event: 2, peak_ns: 200, from_ns: 200, to_ns: 400, total: { bytes: 1310, allocations: 1, growth: 0 } });
    const moment = await source(false).range({ ...query, from: 3, to: 3, by: 'category' });
    expect(moment.rows.map((row) => [row.name, row.bytes, row.byte_seconds])).toEqual([['unknown', 300, 0]]);
    const ids = async (by: 'role' | 'dtype'): Promise<string[]> => (await source(false).range({ ...query, by })).rows.map(({ id }) => id);
    expect([await ids('role'), await ids('dtype')]).toEqual([['role/unknown', 'role/a parameter'], ['dtype/float32', 'dtype/unknown']]);
  });

  it('adds up the blocks in a box, and the rows within a row', async () => {
    const query = { file: 0, lane: 0, filter: NO_FILTER, from: 2, to: 4, box: null, other: null, within: [], by: 'stack', folded: false, sort: 'bytes', side: 'this', descending: true, offset: 0, limit: 10 } as const;
    // A is below B until it is freed; when it is born again, it is on top.
    const box = { axis: 'event', layout: 'stacked', low: 1100, high: 1200 } as const;
    const boxed = await source(true).range({ ...query, box });
    expect(boxed.rows.map((row) => [row.id, row.bytes, row.allocations])).toEqual([['stack/1', 1000, 1], ['stack/2', 300, 0]]);
    expect(boxed.peak_event).toBe(4);
    const low = await source(true).range({ ...query, to: 2, box: { ...box, low: 0, high: 1000 } });
    expect(low.rows.map((row) => [row.id, row.bytes])).toEqual([['stack/1', 1000]]);
    const within = await source(true).range({ ...query, within: ['function/forward (train.py)'] });
    expect(within.rows.map((row) => [row.id, row.bytes, row.inclusive])).toEqual([['stack/1', 1000, 1000]]);
    const main = await source(true).range({ ...query, within: ['function/main (train.py)'] });
    expect(main.rows.map((row) => [row.id, row.bytes, row.inclusive])).toEqual([['stack/1', 0, 1000], ['stack/2', 0, 300]]);
    await expect(source(true).range({ ...query, within: ['x/1'] })).rejects.toThrow('no id of a row');
  });

  it('compares a range with another, and has what was left out of each', async () => {
    const query = { file: 0, lane: 0, filter: NO_FILTER, from: 2, to: 3, box: null, other: { from: 3, to: 4, box: null }, within: [], by: 'stack', folded: false, sort: 'bytes', side: 'difference', descending: true, offset: 0, limit: 10 } as const;
    const table = await source(true).range(query);
    const alone = await source(true).range({ ...query, other: null, side: 'this' });
    const otherAlone = await source(true).range({ ...query, ...query.other, other: null, side: 'this' });
    for (const row of table.rows) {
      const { other, ...own } = row;
      expect({ ...own, other: null }).toEqual(alone.rows.find(({ id }) => id === row.id));
      expect(other).toMatchObject({ bytes: otherAlone.rows.find(({ id }) => id === row.id)!.bytes, inclusive: null });
    }
    expect(table.rows).toHaveLength(3);
    expect(table.other).toEqual({ total: otherAlone.total, peak_event: otherAlone.peak_event, peak_ns: otherAlone.peak_ns, from_ns: 300, to_ns: 400 });
    const differences = table.rows.map((row) => row.bytes - row.other!.bytes);
    expect(differences).toEqual(differences.toSorted((a, b) => b - a));
    const rates = await source(true).range({ ...query, sort: 'allocation_rate', side: 'other' });
    expect(rates.rows.map(({ id }) => id)).toEqual(['stack/1', 'omitted', 'stack/2']);
    await expect(source(true).range({ ...query, other: { from: 3, to: 99, box: null } })).rejects.toThrow('events go from');
  });

  it('knows the stacks of what was left out at the events that people ask for', async () => {
    const flame = await source(true).flame({ ...scope({}), inverted: false, folded: false, other: null });
    const byName = new Map([...flame.name].map((name, i) => [flame.names[name]!.split('\t')[0], flame.bytes[i]]));
    expect(Object.fromEntries(byName)).toEqual({ all: 1310, main: 1310, forward: 1000, load: 310 });
    const earlier = await source(true).flame({ ...scope({ to: 2 }), inverted: false, folded: false, other: null });
    expect(earlier.total).toBe(1310);
    expect(earlier.names.some((name) => name.startsWith('left out of this file'))).toBe(true);
  });

  it('compares one stack with the same calls of the other file, whose stacks have other numbers', async () => {
    const recordings = recordedSource();
    const [one, two] = (await recordings.meta()).files;
    const lane = one!.lanes[0]!;
    const other = { file: 1, lane: two!.lanes.find(({ heap }) => heap === lane.heap)!.lane, to: two!.events };
    const base = { file: 0, lane: lane.lane, filter: NO_FILTER, of: 'live', from: 0, to: lane.peak_event } as const;
    const { rows } = await recordings.table({ ...base, by: 'stack', sort: 'bytes', descending: true, offset: 0, limit: 20, sparkline: 0 });
    let inBoth = 0;
    for (const row of rows.filter(({ id }) => /^stack\/[1-9]\d*$/.test(id))) {
      const filter = { ...NO_FILTER, stack: Number(row.id.slice(6)) };
      const { parent, before } = await recordings.flame({ ...base, filter, inverted: false, folded: false, other });
      // Both sides have one path, the same one.
      expect([...parent.subarray(1)]).toEqual([...parent.keys()].slice(0, -1));
      expect(new Set(before).size).toBe(1);
      if (before[0]! > 0) inBoth++;
    }
    expect(inBoth).toBeGreaterThan(1);
  });

  it('finds blocks by text, address and stream', async () => {
    const rows = async (filter: Partial<Scope['filter']>): Promise<readonly number[]> =>
      (await source(false).find(scope({ of: 'born', filter: { ...NO_FILTER, ...filter } }), 0xffffffff, 10)).rows;
    expect(await rows({ text: 'TRAIN.py:41' })).toEqual([0, 3]);
    expect(await rows({ text: '/^lo.d$/' })).toEqual([1]);
    expect(await rows({ text: '0x7f0000001010' })).toEqual([1]);
    expect(await rows({ stream: '0x7f00' })).toEqual([0, 3]);
    expect(await rows({ text: 'float32 [8' })).toEqual([0, 3]);
    expect(await rows({ text: '/^a param/' })).toEqual([1]);
    await expect(rows({ text: '/(/' })).rejects.toThrow('Not a regular expression');
  });

  it('shows a block that waits for a stream in its segment', async () => {
    const { segments, live_bytes } = await source(false).segments(0, 0, 3);
    expect(segments[0]!.offset).toEqual([0, 4096]);
    expect(segments[0]!.pending).toEqual([1, 0]);
    expect(live_bytes).toBe(300);
  });

  it('knows its blocks, and says why it lacks others', async () => {
    const block = await source(false).block(0, 1);
    expect(block).toMatchObject({ address: '0x7f0000001000', requested: 256, birth_ns: 200, death: 0xffffffff, category: 'unknown', stack: { label: 'recomputed: load (train.py:5)' } });
    expect(await source(false).block(0, 0)).toMatchObject({ death_ns: 300, completed: 4, completed_ns: 390 });
    await expect(source(false).block(0, 2)).rejects.toThrow('not in this file');
  });

  it('names an answer that it was made without', async () => {
    expect((await source(false).answer(0, 'oom')).headline).toBe('no');
    await expect(source(false).answer(0, 'leaks')).rejects.toThrow('gpumemtrace leaks');
  });

  it('reports a truncated file as damaged', async () => {
    const cut = archiveFrom(new Map([['meta', ['H4sIAAAA']]]));
    await expect(new EmbeddedSource(cut).meta()).rejects.toThrow('damaged');
  });
});
