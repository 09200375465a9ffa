import { describe, expect, it } from 'vitest';
import { Random } from '../../testing/random';
import { forEachSeed, seedsUpTo } from '../../testing/seeds';
import { type Axis, type BlockQuery, NEVER, type StepsMeta } from '../protocol';
import type { Blocks, Kinds, Lane } from './lane_data';
import { durationClass, LaneIndex } from './lane_index';
import { type Positions, positionsOf } from './positions';
import { selectStacked, type StackedItems } from './select_blocks';
import { columnEvents, LaneTotals } from './select_curve';

interface Life {
  readonly birth: number;
  readonly death: number;
  readonly size: number;
}

function laneOf(lives: readonly Life[]): Lane {
  const u32 = (value: (life: Life, i: number) => number): Uint32Array => Uint32Array.from(lives, value);
  const zeros = u32(() => 0);
  const blocks: Blocks = {
    count: lives.length,
    row: u32((_, i) => i),
    birth: u32((life) => life.birth),
    death: u32((life) => life.death),
    completed: u32((life) => life.death),
    kind: u32((_, i) => i),
    space: zeros,
    offset: new Float64Array(lives.length),
  };
  const kinds = { size: Float64Array.from(lives, ({ size }) => size), stack: zeros, category: Uint8Array.from(lives, (_, i) => i % 3) } as Partial<Kinds> as Kinds;
  const omissions = { border: zeros.slice(0, 0), bytes: new Float64Array(0), blocks: new Float64Array(0), min: new Float64Array(0), max: new Float64Array(0), peak: new Float64Array(0), stacks: [] };
  return { blocks, kinds, flags: new Uint8Array(lives.length), omissions, reserved: null, samples: new Map(), waited: new Map(), mapped: new Map(), pools: [], tensors: [], alives: [], spaces: [], spaceBegin: [] };
}

/** Returns random blocks over `events` events, some from before the recording, some never freed. */
function randomLives(next: () => number, count: number): { lives: Life[]; events: number } {
  const open: { birth: number; size: number }[] = [];
  const lives: Life[] = [];
  let event = 0;
  const birth = (at: number): void => {
    open.push({ birth: at, size: Math.ceil(2 ** (next() * 24)) });
  };
  for (let i = 0; i < 5; i++) birth(0);
  while (lives.length + open.length < count) {
    event++;
    if (open.length > 0 && next() < 0.48) {
      const [gone] = open.splice(Math.floor(next() ** 2 * open.length), 1);
      lives.push({ ...gone!, death: event });
    } else {
      birth(event);
    }
  }
  lives.push(...open.map((life) => ({ ...life, death: NEVER })));
  lives.sort((a, b) => a.birth - b.birth);
  return { lives, events: event };
}

/** Returns the first event of each column after which most bytes are live; slow and simple. */
function slowPeaks(query: BlockQuery, positions: Float64Array, live: readonly number[]): number[] {
  const width = (query.to - query.from) / query.columns;
  let first = 0;
  return Array.from({ length: query.columns }, (_, c) => {
    const [begin, end] = [query.from + c * width, query.from + (c + 1) * width];
    while (first + 1 < live.length && positions[first + 1]! <= begin) first++;
    let peak = first;
    for (let event = first + 1; event < live.length && positions[event]! < end; event++) {
      if (live[event]! > live[peak]!) peak = event;
    }
    return peak;
  });
}

/**
 * Returns the place of each block in each column, with all blocks stacked in order; slow and
 * simple.
 */
function slowBottoms(lives: readonly Life[], query: BlockQuery, positions: Positions, peaks: readonly number[]): Map<number, number[]> {
  const width = (query.to - query.from) / query.columns;
  const spans = lives.map((life) => ({ start: positions.of(life.birth), end: positions.of(life.death), size: life.size }));
  const order = spans
    .map((span, i) => ({ ...span, i, rank: durationClass(Math.min(span.end, positions.end) - span.start, positions.units) }))
    .filter(({ start, end }) => Math.min(end, positions.end) - start >= width && start < query.to && end > query.from)
    .sort((a, b) => b.rank - a.rank || lives[a.i]!.birth - lives[b.i]!.birth || a.i - b.i);
  const height = new Array<number>(query.columns).fill(0);
  const bottoms = new Map<number, number[]>();
  for (const { i, size } of order) {
    const { birth, death } = lives[i]!;
    const own = height.map((y, c) => (birth <= peaks[c]! && peaks[c]! < death ? y : NaN));
    own.forEach((y, c) => {
      if (!Number.isNaN(y)) height[c] = y + size;
    });
    bottoms.set(i, own);
  }
  return bottoms;
}

/** Returns the same for the selected items: an item is on top of all earlier items. */
function itemBottoms(items: StackedItems, lives: readonly Life[], query: BlockQuery, peaks: readonly number[]): Map<number, number[]> {
  const height = new Array<number>(query.columns).fill(0);
  const bottoms = new Map<number, number[]>();
  items.item.forEach((block, at) => {
    if (block < 0) {
      let k = items.runBegin[at]!;
      let bytes = 0;
      for (let c = 0; c < query.columns; c++) {
        if (k < items.runBegin[at + 1]! && items.runColumn[k] === c) bytes = items.runBytes[k++]!;
        height[c]! += bytes;
      }
      return;
    }
    const { birth, death } = lives[block]!;
    const own = height.map((y, c) => (birth <= peaks[c]! && peaks[c]! < death ? y : NaN));
    own.forEach((y, c) => {
      if (!Number.isNaN(y)) height[c] = y + lives[block]!.size;
    });
    bottoms.set(block, own);
  });
  return bottoms;
}

function clockOf(next: () => number, events: number): Float64Array {
  const ns = new Float64Array(events + 1);
  for (let e = 1; e <= events; e++) ns[e] = ns[e - 1]! + (next() < 0.3 ? 0 : Math.floor(next() ** 8 * 1e7));
  return ns;
}

function stepsOf(events: number): StepsMeta {
  const begin = [0.1, 0.3, 0.5, 0.7].map((part) => Math.floor(part * events));
  const end = [0.3, 0.5, 0.7, 0.9].map((part) => Math.floor(part * events));
  return { source: 'mark step', inferred: false, begin, end, begin_ns: [], end_ns: [] };
}

describe('selectStacked', () => {
  it('places blocks as the slow layout does, to a quarter of a row', () => {
    forEachSeed(seedsUpTo(12), (seed) => {
      const generator = new Random(seed);
      const next = (): number => generator.next();
      const { lives, events } = randomLives(next, 1500);
      const lane = laneOf(lives);
      const clock = clockOf(next, events);
      const totals = new LaneTotals(lane, 3);
      const live = new Array<number>(events + 1).fill(0);
      for (const { birth, death, size } of lives) {
        for (let event = birth; event < Math.min(death, live.length); event++) live[event]! += size;
      }
      let compared = 0;
      let worst = 0; // in rows; NaN: shown where it does not live
      const wrong: number[] = [];
      for (const axis of ['time', 'event', 'step'] satisfies Axis[]) {
        const positions = positionsOf(axis, clock, stepsOf(events), clock[events]!);
        const index = new LaneIndex(lane.blocks, positions);
        const places = Float64Array.from(live, (_, event) => positions.of(event));
        const end = places[events]!;
        for (let i = 0; i < 8; i++) {
          const length = end * 2 ** -Math.floor(next() * 8);
          const from = next() * (end - length);
          const low = next() < 0.5 ? 0 : next() * 1e8;
          const query: BlockQuery = { file: 0, lane: 0, axis, from, to: from + length, columns: 10 + Math.floor(next() * 90), layout: 'stacked', low, high: low + 2 ** (16 + next() * 12), rows: 200 };
          const row = (query.high - query.low) / query.rows;
          const columns = columnEvents(query, { positions }, totals);
          const peaks = slowPeaks(query, places, live);
          expect([...columns.peak]).toEqual(peaks);
          const items = selectStacked(query, lane, index, columns);
          const exact = slowBottoms(lives, query, positions, peaks);
          const shown = itemBottoms(items, lives, query, peaks);
          for (const [block, bottoms] of shown) {
            bottoms.forEach((y, c) => {
              const right = exact.get(block)![c]!;
              if (Number.isNaN(y) && Number.isNaN(right)) return;
              compared++;
              const error = Math.abs(y - right) / row;
              if (!(error <= worst)) worst = error;
            });
          }
          // No visible block is missing.
          for (const [block, bottoms] of exact) {
            const size = lives[block]!.size;
            const seen = size >= row && bottoms.some((y) => y < query.high && y + size > query.low);
            if (shown.has(block) !== seen) wrong.push(block);
          }
        }
      }
      expect(compared).toBeGreaterThan(100);
      expect(worst).toBeLessThanOrEqual(0.25 + 1e-9);
      expect(wrong).toEqual([]);
    });
  });
});
