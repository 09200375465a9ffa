import { describe, expect, it } from 'vitest';
import { Random } from '../../testing/random';
import { midpointOf } from '../../data/columns';
import { NO_ROW, type Axis, type BlockQuery, type BlockTile, type CurveTile } from '../../data/protocol';
import type { Quads } from '../../render/quads';
import { domainOf } from '../../state/navigator';
import { recordedSource } from '../../testing/recordings';
import { layoutAddress } from './address_layout';
import { layoutStacked, StackedLayout } from './stacked_layout';

const QUERY: BlockQuery = { file: 0, lane: 0, axis: 'event', from: 0, to: 10, columns: 10, layout: 'stacked', low: 0, high: 100, rows: 100 };

interface Item {
  readonly start: number;
  readonly end: number;
  readonly size: number;
  readonly category?: number;
}
type Run = readonly (readonly [column: number, bytes: number])[];

// Each column is one event.
const columnOf = (position: number): number => Math.min(QUERY.columns, Math.max(0, position));

function tileOf(items: readonly (Item | Run)[]): BlockTile {
  const of = (value: (item: Item) => number): number[] => items.map((item) => ('size' in item ? value(item) : 0));
  const runs = items.map((item): Run => ('size' in item ? [] : item));
  const begin = [0];
  for (const run of runs) begin.push(begin[begin.length - 1]! + run.length);
  return {
    query: QUERY,
    row: Uint32Array.from(items, (item, i) => ('size' in item ? i : NO_ROW)),
    first: Uint16Array.from(of((item) => columnOf(item.start))), last: Uint16Array.from(of((item) => columnOf(item.end))),
    start: Float64Array.from(of((item) => item.start)), end: Float64Array.from(of((item) => item.end)), size: Float64Array.from(of((item) => item.size)),
    place: new Float64Array(items.length), stack: new Uint32Array(items.length), forward_stack: new Uint32Array(items.length), key: new Uint32Array(items.length),
    category: Uint8Array.from(of((item) => item.category ?? 0)), stream: new Uint16Array(items.length), thread: new Uint16Array(items.length),
    role: new Uint8Array(items.length), dtype: new Uint16Array(items.length),
    flags: new Uint8Array(items.length), run_begin: Uint32Array.from(begin),
    run_column: Uint16Array.from(runs.flat().map(([column]) => column)), run_bytes: Float64Array.from(runs.flat().map(([, bytes]) => bytes)),
    hidden: 0, spaces: [],
  };
}

function curveOf(live: readonly number[], categories: readonly (readonly number[])[] = []): CurveTile {
  const values = Float64Array.from(live);
  return {
    window: QUERY, event: new Uint32Array(10), peak: new Uint32Array(10), ns: new Float64Array(10), series: new Map([['live', { min: values, max: values, mid: values }]]), samples: new Map(),
    categories: Float64Array.from(categories.flat()),
  };
}

const NOTHING = curveOf(new Array<number>(10).fill(0));

function quadsOf({ quads }: { readonly quads: Quads }): string[] {
  return Array.from({ length: quads.count }, (_, i) => `${quads.item[i]}: ${quads.x0[i]}-${quads.x1[i]} at ${quads.y0[i]}-${quads.y1[i]}`);
}

describe('stacked layout', () => {
  it('puts a block on top of what is live below it, and lowers it when that is freed', () => {
    const tile = tileOf([{ start: 0, end: 5, size: 8 }, { start: 2, end: 9, size: 4 }]);
    expect(quadsOf(layoutStacked(tile, NOTHING, 0))).toEqual(['0: 0-5 at 0-8', '1: 2-5 at 8-12', '1: 5-9 at 0-4']);
  });
  it('has one quad as far as the sum below stays the same', () => {
    const tile = tileOf([{ start: 0, end: 5, size: 8 }, { start: 5, end: 10, size: 8 }, { start: 1, end: 10, size: 1 }]);
    expect(quadsOf(layoutStacked(tile, NOTHING, 0)).slice(2)).toEqual(['2: 1-10 at 8-9']);
  });
  it('has no block that is live at the peak of no column', () => {
    const tile = tileOf([{ start: -4, end: 2, size: 1 }, { start: 3, end: 3, size: 9 }, { start: 4, end: Infinity, size: 2 }]);
    expect(quadsOf(layoutStacked(tile, NOTHING, 0))).toEqual(['0: 0-2 at 0-1', '2: 4-10 at 0-2']);
  });
  it('places blocks on runs, which have their own quads', () => {
    const tile = tileOf([[[1, 3], [4, 0], [6, 5]], { start: 0, end: 10, size: 2 }]);
    expect(quadsOf(layoutStacked(tile, NOTHING, 0))).toEqual(['0: 1-4 at 0-3', '0: 6-10 at 0-5', '1: 0-1 at 0-2', '1: 1-4 at 3-5', '1: 4-6 at 0-2', '1: 6-10 at 5-7']);
  });
  it('ignores height changes below the tolerance, and never deviates by more', () => {
    const steps = Array.from({ length: 10 }, (_, i): Item => ({ start: i, end: 10, size: 1 }));
    const { quads } = layoutStacked(tileOf([...steps, { start: 0, end: 10, size: 50 }]), NOTHING, 2.5);
    const mine = quadsOf({ quads }).filter((quad) => quad.startsWith('10:'));
    expect(mine).toEqual(['10: 0-3 at 1-51', '10: 3-6 at 4-54', '10: 6-9 at 7-57', '10: 9-10 at 10-60']);
  });
  it('shows the rest as areas by category on top', () => {
    const tile = tileOf([{ start: 0, end: 5, size: 8, category: 1 }]);
    const live = [12, 12, 12, 12, 12, 4, 4, 4, 4, 4];
    const curve = curveOf(live, [new Array<number>(10).fill(1), live.map((bytes) => bytes - 1)]);
    expect(quadsOf(layoutStacked(tile, curve, 0)).slice(1)).toEqual(['1: 0-5 at 8-9', '1: 5-10 at 0-1', '2: 0-5 at 9-12', '2: 5-10 at 1-4']);
  });
  it('can be computed in slices', () => {
    const tile = tileOf(Array.from({ length: 500 }, (_, i): Item => ({ start: i % 10, end: 10, size: 1 + (i % 3) })));
    const layout = new StackedLayout(tile, NOTHING, 0);
    let time = 0;
    let slices = 1;
    while (!layout.run(time, () => time++)) ++slices;
    expect(slices).toBeGreaterThan(3);
    expect(quadsOf(layout.finish())).toEqual(quadsOf(layoutStacked(tile, NOTHING, 0)));
  });
  it('of an empty tile is empty', () => expect(layoutStacked(tileOf([]), NOTHING, 0).quads.count).toBe(0));
});

/** Returns the bytes of an item of a tile in a column. */
function bytesIn(tile: BlockTile, item: number, column: number): number {
  if (tile.row[item] !== NO_ROW) {
    return tile.first[item]! <= column && column < tile.last[item]! ? tile.size[item]! : 0;
  }
  const begin = tile.run_begin[item]!;
  const last = tile.run_column.subarray(begin, tile.run_begin[item + 1]).findLastIndex((each) => each <= column);
  return last < 0 ? 0 : tile.run_bytes[begin + last]!;
}

describe('compared with a slow layout', async () => {
  const source = recordedSource();
  const file = (await source.meta()).files[0]!;
  const peak = file.lanes[0]!.peak_bytes;
  const random = new Random(29);
  it.each(Array.from({ length: 24 }, (_, round) => round))('viewport %i has every item in its place, to a quarter of a row', async () => {
    const axis = random.pick<Axis>(['time', 'event', 'step']);
    const whole = domainOf(file, axis).to;
    const size = whole * 10 ** (-2 * random.next());
    const from = random.next() * (whole - size);
    const low = random.below(3) === 0 ? random.next() * peak * 0.8 : 0;
    const query: BlockQuery = { file: 0, lane: 0, axis, from, to: from + size, columns: 50 + random.below(300), layout: 'stacked', low, high: low + peak * (0.1 + random.next()), rows: 40 + random.below(500) };
    const tile = await source.blocks(query);
    const quarter = (query.high - query.low) / query.rows / 4;
    const { quads } = layoutStacked(tile, await source.curve(query), quarter);
    for (let c = 0; c < query.columns; c += 7) {
      const middle = midpointOf(query, c);
      const shown = new Map<number, number>(); // bottom by item
      for (let i = 0; i < quads.count; ++i) if (quads.x0[i]! <= middle && middle < quads.x1[i]!) shown.set(quads.item[i]!, quads.y0[i]!);
      let place = 0;
      for (let item = 0; item < tile.row.length; ++item) {
        const bytes = bytesIn(tile, item, c);
        expect(shown.has(item)).toBe(bytes > 0);
        if (bytes > 0) expect(Math.abs(shown.get(item)! - place)).toBeLessThanOrEqual(quarter);
        place += bytes;
      }
    }
  });
  it.each(Array.from({ length: 24 }, (_, round) => round))('viewport %i is as high as the most that is live in each column', async () => {
    const axis = random.pick<Axis>(['time', 'event', 'step']);
    const whole = domainOf(file, axis).to;
    const size = whole * 10 ** (-2 * random.next());
    const from = random.next() * (whole - size);
    const query: BlockQuery = { file: 0, lane: 0, axis, from, to: from + size, columns: 50 + random.below(300), layout: 'stacked', low: 0, high: peak * 1.06, rows: 40 + random.below(500) };
    const curve = await source.curve(query);
    const tolerance = (query.high - query.low) / query.rows / 4;
    const { quads } = layoutStacked(await source.blocks(query), curve, tolerance);
    const { max } = curve.series.get('live')!;
    for (let c = 0; c < query.columns; ++c) {
      const middle = midpointOf(query, c);
      let [top, sum] = [0, 0];
      for (let i = 0; i < quads.count; ++i) {
        if (quads.x0[i]! > middle || middle >= quads.x1[i]!) continue;
        top = Math.max(top, quads.y1[i]!);
        sum += quads.y1[i]! - quads.y0[i]!;
      }
      // Neighbours of nearly one height share a quad.
      expect(Math.abs(top - max[c]!)).toBeLessThanOrEqual(2 * tolerance);
      expect(sum).toBeGreaterThan(0.9 * max[c]!);
    }
  });
});

it('layout by address has one rectangle per block, cut at the tile', () => {
  const tile = tileOf([{ start: -1, end: Infinity, size: 8 }, { start: 2, end: 3, size: 4 }, { start: 11, end: 12, size: 1 }]);
  tile.place.set([100, 50, 0]);
  expect(quadsOf(layoutAddress(tile))).toEqual(['0: 0-10 at 100-108', '1: 2-3 at 50-54']);
});
