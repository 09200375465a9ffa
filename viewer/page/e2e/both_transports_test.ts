// Checks that both transports give the same answers: the server, in C++ over the recording, and the
// standalone file, in TypeScript over its content. Pictures agree to a quarter of a row, numbers
// exactly.

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { DataSource } from '../src/data/data_source';
import { Random } from '../src/testing/random';
import { seedsOfSuite } from '../src/testing/seeds';
import { ALL_EVENT_KINDS, type Axis, type BlockQuery, type BlockTile, type CurveTile, type FileMeta, type Filter, type FlameTree, NO_ROW, type EventRange, type RangeAmounts, type RangeBox, type RangeQuery, type RangeRow, type RangeTable, type Scope, type TableQuery } from '../src/data/protocol';
import { NO_FILTER } from '../src/state/state';
import { noPage, run } from './program';
import { writeRandomLog } from './random_log';
import { TwoTransports } from './two_transports';

const FILTERS: readonly Partial<Filter>[] = [
  {}, { text: 'layer_3' }, { text: 'Layer_3 (model_1.py)' }, { text: '/model_[12]/' }, { text: '/LAYER/' }, { text: '/(?i)LAYER_3/' },
  { text: '0x7f00000' }, { text: 'saved for backward' }, { text: 'bfloat16 [' }, { stream: '0x7f00' }, { min_size: 5000 }, { forward_stack: 3 },
];

describe.skipIf(noPage('view') !== '').each(seedsOfSuite([7]))('a recording through both transports (GMT_TEST_SEED=%i)', (seed) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-transports-log-'));
  let random = new Random(seed);
  let transports: TwoTransports;
  let file: FileMeta;

  beforeAll(async () => {
    writeRandomLog(path.join(folder, 'run.jsonl'), random, 12_000);
    transports = await TwoTransports.open(folder, 'run.jsonl');
    file = (await transports.server.meta()).files[0]!;
  });
  // So that a test asks the same questions when it is run alone.
  beforeEach(() => {
    random = new Random(seed + 1);
  });
  afterAll(async () => {
    await transports.close();
    rmSync(folder, { recursive: true });
  });

  const lengthOn = (axis: Axis): number => (axis === 'time' ? file.end_ns : axis === 'event' ? file.events + 1 : file.steps.begin.length + 2);
  const windows = function* (): Generator<{ file: 0; lane: number; axis: Axis; from: number; to: number; columns: number }> {
    for (const { lane } of file.lanes) {
      for (const axis of ['time', 'event', 'step'] satisfies Axis[]) {
        if (axis === 'step' && file.steps.source === '') continue;
        for (const zoom of [0.8, 1, 4, 37, 900]) {
          const length = lengthOn(axis) / zoom;
          const from = random.next() * (lengthOn(axis) - length);
          const columns = 40 + random.below(300);
          yield { file: 0, lane, axis, from, to: from + length, columns };
          // Here events are at midpoints of columns, where rounding decides.
          if (axis === 'event') yield { file: 0, lane, axis, from: Math.floor(from), to: Math.ceil(from + length), columns };
        }
      }
    }
  };

  it('has the same meta except for the transport', async () => {
    const { files } = await transports.file.meta();
    expect({ ...files[0]!, omitted: null }).toEqual({ ...file, omitted: null });
    expect(files[0]!.omitted).toBeNull();
  });

  it('has the same curves', async () => {
    for (const window of windows()) {
      expect(numbersOf(await transports.file.curve(window))).toEqual(numbersOf(await transports.server.curve(window)));
    }
  });

  it('knows nothing of the driver before its first sample', async () => {
    const lane = file.lanes.findIndex(({ series }) => series.includes('driver_used'));
    const window = { file: 0, lane, axis: 'event', from: 0, to: file.events + 1, columns: 1000 } as const;
    for (const source of [transports.server, transports.file]) {
      const { value, ns } = (await source.curve(window)).samples.get('driver_used')!;
      const begin = value.findIndex((bytes) => !Number.isNaN(bytes));
      expect(begin).toBeGreaterThan(10);
      expect(value.subarray(begin).every((bytes) => bytes >= 2 ** 30)).toBe(true);
      expect(ns.subarray(begin)).toEqual(ns.subarray(begin).toSorted());
    }
  });

  it('places blocks where the server places them', async () => {
    let compared = 0;
    for (const window of windows()) {
      const peak = file.lanes[window.lane]!.peak_bytes;
      for (const [low, high] of [[0, peak * 1.05], [peak * 0.3, peak * 0.4]] as const) {
        const query: BlockQuery = { ...window, layout: 'stacked', low, high, rows: 300 };
        compared += comparePictures(await transports.server.blocks(query), await transports.file.blocks(query), query);
      }
    }
    expect(compared).toBeGreaterThan(1000);
  });

  it('colours the same blocks by role and type', async () => {
    expect(file.roles).toHaveLength(7);
    expect([...file.dtypes].sort()).toEqual(['bfloat16', 'float32', 'unknown']);
    const lane = file.lanes.findIndex(({ heap }) => heap === 'pytorch');
    const query: BlockQuery = { file: 0, lane, axis: 'event', from: 0, to: file.events, columns: 800, layout: 'address', low: 0, high: 2 ** 31, rows: 4000 };
    for (const source of [transports.server, transports.file]) {
      const { row, role, dtype } = await source.blocks(query);
      const roles = new Set<string>();
      const dtypes = new Set<string>();
      for (const [i, id] of [...row].slice(0, 200).entries()) {
        const { alive, tensor } = await source.block(0, id);
        roles.add(file.roles[role[i]!]!);
        dtypes.add(file.dtypes[dtype[i]!]!);
        expect(role[i] === 0 ? alive : alive.startsWith(file.roles[role[i]!]!)).toBe(role[i] === 0 ? '' : true);
        expect(tensor.split(' ')[0]).toBe(dtype[i] === 0 ? '' : file.dtypes[dtype[i]!]);
      }
      expect([...roles]).toEqual(expect.arrayContaining(['a parameter', 'a gradient', 'saved for backward', 'only the program holds it']));
      expect(dtypes.size).toBe(3);
    }
  });

  it('lists the same events', async () => {
    for (const { lane, label } of file.lanes) {
      const all = await transports.server.events({ file: 0, lane, kinds: ALL_EVENT_KINDS, offset: 0, limit: 1, event: 0 });
      expect(all.total, label).toBeGreaterThan(0);
      expect(all.counts.reduce((sum, count) => sum + count, 0)).toBe(all.total);
      for (let i = 0; i < 16; i++) {
        const kinds = i < 4 ? ALL_EVENT_KINDS : random.below(ALL_EVENT_KINDS + 1);
        const query = { file: 0, lane, kinds, offset: random.below(all.total), limit: 1 + random.below(500), event: random.below(file.events + 1) };
        expect(await transports.file.events(query)).toEqual(await transports.server.events(query));
      }
    }
  });

  it('has the same blocks by address', async () => {
    for (const window of windows()) {
      const query: BlockQuery = { ...window, layout: 'address', low: 0, high: 2 ** 31, rows: 4000 };
      expect(placesOf(await transports.file.blocks(query))).toEqual(placesOf(await transports.server.blocks(query)));
    }
  });

  const scopes = (): Scope[] => {
    return file.lanes.flatMap(({ lane }) =>
      FILTERS.flatMap((filter) =>
        (['live', 'growth', 'born', 'kept'] as const).map((of) => {
          const from = random.below(file.events);
          return { file: 0, lane, filter: { ...NO_FILTER, ...filter }, of, from, to: from + random.below(file.events - from) };
        }),
      ),
    );
  };

  it('matches the same with a filter, and everything live without one', async () => {
    for (const window of windows()) {
      const all = { ...window, filter: NO_FILTER };
      const { live } = await transports.server.passing(all);
      expect(live).toEqual((await transports.server.curve(window)).series.get('live')!.max);
      expect((await transports.file.passing(all)).live).toEqual(live);
      for (const change of [...FILTERS.slice(1), { stack: 7 }, { thread: '12' }, { category: 'unknown', stream: 'unknown' }, { text: 'layer_3', max_size: 4096 }]) {
        const query = { ...window, filter: { ...NO_FILTER, ...change } };
        expect((await transports.file.passing(query)).live, JSON.stringify(query)).toEqual((await transports.server.passing(query)).live);
      }
    }
  });

  it('matches at an event what tables add up there', async () => {
    let passed = 0;
    for (const scope of scopes()) {
      if (scope.of !== 'live') continue;
      const { file: number, lane, filter, to } = scope;
      const table = await transports.server.table({ ...scope, by: 'stack', sort: 'bytes', descending: true, offset: 0, limit: 1, sparkline: 0 });
      const { live } = await transports.server.passing({ file: number, lane, filter, axis: 'event', from: to, to: to + 1, columns: 1 });
      expect(live[0]).toBe(table.total_bytes);
      passed += live[0]!;
    }
    expect(passed).toBeGreaterThan(0);
  });

  it('has the same tables', async () => {
    for (const scope of scopes()) {
      for (const by of ['stack', 'function', 'file', 'category', 'size', 'stream', 'thread', 'block'] as const) {
        const sort = random.pick(['bytes', 'peak', 'lifetime', 'rate', 'name'] as const);
        const query: TableQuery = { ...scope, by, sort, descending: random.below(2) === 0, offset: random.below(5), limit: 20, sparkline: 9 };
        expect(await transports.file.table(query), JSON.stringify(query)).toEqual(await transports.server.table(query));
      }
    }
  });

  it('has the same tables of ranges', async () => {
    const summed = ({ byte_seconds: sum, ...row }: RangeAmounts): object => ({ ...row, byte_seconds: Number(sum.toPrecision(9)) });
    const rowOf = (row: RangeRow): object => ({ ...summed(row), other: row.other === null ? null : summed(row.other) });
    const comparable = (table: RangeTable): object => ({
      ...table, rows: table.rows.map(rowOf), total: summed(table.total), other: table.other === null ? null : { ...table.other, total: summed(table.other.total) },
    });
    const anyOther = (lane: number): EventRange | null => {
      if (random.below(2) === 0) return null;
      const from = random.below(file.events);
      return { from, to: from + random.below(file.events - from), box: anyBox(lane) };
    };
    const anyBox = (lane: number): RangeBox | null => {
      if (random.below(2) === 0) return null;
      const low = random.below(file.lanes[lane]!.peak_bytes);
      const axis = random.pick((['time', 'event', 'step'] as const).filter((each) => each !== 'step' || file.steps.source !== ''));
      return { axis, layout: random.pick(['stacked', 'address'] as const), low, high: low + 1 + random.below(file.lanes[lane]!.peak_bytes / 4) };
    };
    for (const { file: number, lane, filter, from, to } of scopes()) {
      for (const by of ['category', 'role', 'dtype', 'module', 'function', 'line', 'stack', 'thread', 'stream'] as const) {
        const sort = random.pick(['bytes', 'inclusive', 'allocations', 'allocation_rate', 'growth', 'end_bytes', 'name'] as const);
        const side = random.pick(['this', 'other', 'difference'] as const);
        const query: RangeQuery = { file: number, lane, filter, from, to: random.below(5) === 0 ? from : to, box: anyBox(lane), other: anyOther(lane), within: [], by, folded: random.below(2) === 0, sort, side, descending: random.below(2) === 0, offset: random.below(3), limit: 20 };
        const [ofServer, ofFile] = await Promise.all([transports.server.range(query), transports.file.range(query)]);
        expect(comparable(ofFile), JSON.stringify(query)).toEqual(comparable(ofServer));
        if (ofServer.rows.length === 0) continue;
        const inRow: RangeQuery = { ...query, offset: 0, within: [random.pick(ofServer.rows).id], by: random.pick(['category', 'function', 'line', 'stack', 'thread'] as const) };
        const [inServer, inFile] = await Promise.all([transports.server.range(inRow), transports.file.range(inRow)]);
        expect(comparable(inFile), JSON.stringify(inRow)).toEqual(comparable(inServer));
      }
    }
  });

  it('has the same flame graphs', async () => {
    for (const scope of scopes()) {
      for (const inverted of [false, true]) {
        const query = { ...scope, inverted, folded: random.below(2) === 0, other: scope.of === 'live' ? { file: 0, lane: scope.lane, to: scope.from } : null };
        expect(pathsOf(await transports.file.flame(query))).toEqual(pathsOf(await transports.server.flame(query)));
      }
    }
  });

  it('finds the same blocks', async () => {
    for (const scope of scopes()) {
      const first = await transports.server.find(scope, NO_ROW, 7);
      expect(await transports.file.find(scope, NO_ROW, 7)).toEqual(first);
      const last = first.rows.at(-1);
      if (last !== undefined) expect(await transports.file.find(scope, last, 7)).toEqual(await transports.server.find(scope, last, 7));
    }
  });

  it('knows the same details of a block and its stacks', async () => {
    const rows = (await transports.server.find({ file: 0, lane: 0, filter: NO_FILTER, of: 'born', from: 0, to: file.events }, NO_ROW, 500)).rows;
    for (let i = 0; i < 60; i++) {
      const row = random.pick(rows);
      const block = await transports.server.block(0, row);
      expect(await transports.file.block(0, row)).toEqual(block);
      const ids = [block.stack.stack, block.forward_stack?.stack ?? 0];
      expect(await transports.file.stacks(0, ids)).toEqual(await transports.server.stacks(0, ids));
    }
  });

  it('labels stacks as the report does', async () => {
    const labels = reportedLabels(folder, 'run.jsonl');
    expect([...labels.values()].filter((label) => label.startsWith('backward of ')).length).toBeGreaterThan(10);
    for (const source of [transports.server, transports.file]) expect(await shownLabels(source)).toEqual(labels);
  });

  it('has the same segments', async () => {
    for (const { lane, has_segments: has } of file.lanes) {
      if (!has) continue;
      for (let i = 0; i < 30; i++) {
        const event = random.below(file.events + 1);
        expect(await transports.file.segments(0, lane, event)).toEqual(await transports.server.segments(0, lane, event));
      }
    }
  });

  it('has the same answers', async () => {
    for (const name of ['report', 'oom', 'leaks', 'ledger', 'frag'] as const) {
      const [ofServer, ofFile] = await Promise.allSettled([transports.server.answer(0, name), transports.file.answer(0, name)]);
      expect(ofFile.status).toBe(ofServer.status);
      if (ofServer.status === 'fulfilled' && ofFile.status === 'fulfilled') expect(ofFile.value).toEqual(ofServer.value);
    }
  });
});

describe.skipIf(noPage('view') !== '')('a recording of PyTorch through both transports', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-transports-torch-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('labels stacks as the report does', async () => {
    copyFileSync(path.join(import.meta.dirname, '..', '..', '..', 'tests', 'golden', 'torch-2.11.pickle'), path.join(folder, 'run.pickle'));
    const labels = reportedLabels(folder, 'run.pickle');
    expect(labels.size).toBeGreaterThan(1);
    const transports = await TwoTransports.open(folder, 'run.pickle');
    for (const source of [transports.server, transports.file]) expect(await shownLabels(source)).toEqual(labels);
    await transports.close();
  });
});

/** Returns the labels of the rows of `report`, by id: of PyTorch's blocks that are held at the end. */
function reportedLabels(folder: string, file: string): Map<string, string> {
  const report = JSON.parse(run(folder, 'report', '--json', '--heap', 'pytorch', '--device', '0', '--at', 'end', '--top', '100000', file)) as { readonly rows: readonly { readonly id: string; readonly label: string }[] };
  return new Map(report.rows.map(({ id, label }) => [id, label] as const).sort());
}

/** Returns those of the page's table. */
async function shownLabels(source: DataSource): Promise<Map<string, string>> {
  const { events, lanes } = (await source.meta()).files[0]!;
  const { lane } = lanes.find(({ heap, device }) => heap === 'pytorch' && device === 0)!;
  const { rows } = await source.table({
    file: 0, lane, filter: NO_FILTER, of: 'live', from: 0, to: events, by: 'stack', sort: 'bytes', descending: true, offset: 0, limit: 500, sparkline: 0,
  });
  return new Map(rows.map(({ id, name }) => [id, name] as const).sort());
}

function numbersOf(tile: CurveTile): object {
  return { ...tile, series: [...tile.series].sort(([a], [b]) => a.localeCompare(b)), samples: [...tile.samples] };
}

/** Returns the bottoms of the shown blocks by row and column. */
function bottomsOf(tile: BlockTile, query: BlockQuery): Map<number, Float64Array> {
  const height = new Float64Array(query.columns);
  const bottoms = new Map<number, Float64Array>();
  for (let i = 0; i < tile.row.length; i++) {
    if (tile.row[i] === NO_ROW) {
      let k = tile.run_begin[i]!;
      let bytes = 0;
      for (let c = 0; c < query.columns; c++) {
        if (k < tile.run_begin[i + 1]! && tile.run_column[k] === c) bytes = tile.run_bytes[k++]!;
        height[c]! += bytes;
      }
      continue;
    }
    const own = new Float64Array(query.columns).fill(NaN);
    for (let c = 0; c < query.columns; c++) {
      if (c < tile.first[i]! || c >= tile.last[i]!) continue;
      own[c] = height[c]!;
      height[c]! += tile.size[i]!;
    }
    bottoms.set(tile.row[i]!, own);
  }
  return bottoms;
}

/**
 * Compares pictures. Each block is off by at most a quarter of a row, so two of them by at most a
 * half.
 */
function comparePictures(one: BlockTile, other: BlockTile, query: BlockQuery): number {
  const row = (query.high - query.low) / query.rows;
  const left = bottomsOf(one, query);
  const right = bottomsOf(other, query);
  expect([...right.keys()].sort((a, b) => a - b)).toEqual([...left.keys()].sort((a, b) => a - b));
  expect(other.hidden).toBe(one.hidden);
  let compared = 0;
  let worst = 0;
  for (const [id, bottoms] of left) {
    bottoms.forEach((y, c) => {
      const twin = right.get(id)![c]!;
      if (Number.isNaN(y) && Number.isNaN(twin)) return;
      const error = Math.abs(y - twin) / row;
      if (!(error <= worst)) worst = error;
      compared++;
    });
  }
  expect(worst).toBeLessThanOrEqual(0.5 + 1e-9);
  for (const name of ['stack', 'key', 'category', 'stream', 'thread', 'role', 'dtype', 'flags', 'start', 'end'] as const) {
    const of = (tile: BlockTile): Map<number, number> => new Map([...tile.row].map((id, i): [number, number] => [id, tile[name][i]!]).filter(([id]) => id !== NO_ROW));
    expect(of(other)).toEqual(of(one));
  }
  return compared;
}

function placesOf(tile: BlockTile): object {
  const order = [...tile.row.keys()].sort((a, b) => tile.row[a]! - tile.row[b]!);
  return {
    blocks: order.map((i) => [tile.row[i], tile.start[i], tile.end[i], tile.size[i], tile.place[i]]),
    spaces: tile.spaces,
    hidden: tile.hidden,
  };
}

/** Returns the nodes by their path from the root. */
function pathsOf(tree: FlameTree): Map<string, readonly number[]> {
  const paths: string[] = [];
  const out = new Map<string, readonly number[]>();
  for (let i = 0; i < tree.parent.length; i++) {
    paths[i] = i === 0 ? '' : `${paths[tree.parent[i]!]!} > ${tree.names[tree.name[i]!]!}`;
    out.set(paths[i]!, [tree.bytes[i]!, tree.blocks[i]!, tree.before[i] ?? 0, tree.category[i] ?? -1, tree.category_bytes[i] ?? 0]);
  }
  return out;
}
