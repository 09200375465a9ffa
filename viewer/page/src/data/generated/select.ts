// Computes what a window shows (see protocol.ts) in a slow and obvious way: visits every block and
// walks over every column. Also serves as the oracle for layouts in tests.

import { upperBound } from '../../base/binary_search';
import { edgeOf, firstColumn, midpointOf, widthOf } from '../columns';
import {
  BLOCK_FROM_BEFORE, BLOCK_NOT_FREED, BLOCK_PENDING, NEVER, NO_ROW,
  type AddressSpace, type Axis, type BlockQuery, type BlockTile, type CurveSeries, type CurveTile, type Series, type StepsMeta, type Window,
} from '../protocol';
import { CATEGORIES, type Block, type Recording } from './recording';

/** Returns the position of the moment after `event` on an axis. */
export function positionOf(recording: Recording, axis: Axis, event: number): number {
  if (event === NEVER) return Infinity;
  switch (axis) {
    case 'event':
      return event;
    case 'time':
      return event === 0 ? 0 : recording.times[event - 1]!;
    case 'step':
      return stepOf(recording.steps, recording.times.length, event);
  }
}

/** Returns the last event that has happened at a position. */
export function eventAt(recording: Recording, axis: Axis, position: number): number {
  let low = 0;
  let high = recording.times.length;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (positionOf(recording, axis, middle) <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

function stepOf(steps: StepsMeta, events: number, event: number): number {
  const step = upperBound(steps.begin, event); // steps begun before it
  const begin = step === 0 ? 0 : steps.begin[step - 1]!;
  const end = steps.begin[step] ?? events + 1;
  return step + (event - begin) / Math.max(1, end - begin);
}

export function selectCurve(recording: Recording, window: Window): CurveTile {
  const { columns } = window;
  const event = new Uint32Array(columns);
  const ns = new Float64Array(columns);
  for (let c = 0; c < columns; ++c) {
    const middle = midpointOf(window, c);
    event[c] = eventAt(recording, window.axis, middle);
    ns[c] = window.axis === 'time' ? middle : positionOf(recording, 'time', event[c]!);
  }
  const series = new Map<Series, CurveSeries>();
  series.set('live', sample(recording, window, event, runningTotal(recording, window.lane)));
  if (window.lane === 0) {
    const reserved = runningTotal(recording, 1);
    series.set('reserved', sample(recording, window, event, reserved));
    series.set('driver_used', sample(recording, window, event, reserved.map((bytes) => bytes + 400 * 1024 * 1024)));
  }
  const categories = new Float64Array(CATEGORIES.length * columns);
  for (let code = 0; code < CATEGORIES.length; ++code) {
    const total = runningTotal(recording, window.lane, code);
    for (let c = 0; c < columns; ++c) categories[code * columns + c] = total[event[c]!]!;
  }
  return { window, event, ns, series, categories };
}

/** Returns the bytes live after each event, of one category or all. */
export function runningTotal(recording: Recording, lane: number, category?: number): Float64Array {
  const total = new Float64Array(recording.times.length + 1);
  for (const block of recording.blocks) {
    if (block.lane !== lane || (category !== undefined && block.category !== category)) continue;
    total[block.birth]! += block.size;
    if (block.death !== NEVER) total[block.death]! -= block.size;
  }
  for (let i = 1; i < total.length; ++i) total[i]! += total[i - 1]!;
  return total;
}

function sample(recording: Recording, window: Window, event: Uint32Array, total: Float64Array): CurveSeries {
  const { columns } = window;
  const result = { min: new Float64Array(columns), max: new Float64Array(columns), mid: new Float64Array(columns) };
  for (let c = 0; c < columns; ++c) {
    const first = eventAt(recording, window.axis, edgeOf(window, c));
    const last = eventAt(recording, window.axis, edgeOf(window, c + 1));
    let min = Infinity;
    let max = -Infinity;
    for (let e = first; e <= last; ++e) {
      min = Math.min(min, total[e]!);
      max = Math.max(max, total[e]!);
    }
    result.min[c] = min;
    result.max[c] = max;
    result.mid[c] = total[event[c]!]!;
  }
  return result;
}

interface Placed {
  readonly block: Block;
  readonly start: number;
  readonly end: number;
  readonly first: number; // columns [first, last) whose midpoint is in its lifetime
  readonly last: number;
}

export function selectBlocks(recording: Recording, query: BlockQuery): BlockTile {
  const placed = recording.blocks.filter((block) => block.lane === query.lane).map((block) => place(recording, query, block));
  const width = widthOf(query);
  const seen = placed.filter((each) => each.end > query.from && each.start < query.to);
  const long = seen.filter((each) => each.end - each.start >= width && each.first < each.last);
  const writer = new TileWriter(recording, query);
  if (query.layout === 'address') selectAddress(query, long, writer);
  else selectStacked(query, long, writer);
  return writer.finish(seen.length, query.layout === 'address' ? spacesOf(recording, query.axis) : []);
}

function place(recording: Recording, query: BlockQuery, block: Block): Placed {
  const start = positionOf(recording, query.axis, block.birth);
  const end = positionOf(recording, query.axis, block.death);
  return { block, start, end, first: firstColumn(query, start), last: firstColumn(query, end) };
}

export function durationClass(axis: Axis, start: number, end: number): number {
  if (end === Infinity) return Infinity;
  return Math.floor(Math.log2((end - start) * (axis === 'step' ? 4096 : 1)));
}

function selectStacked(query: BlockQuery, placed: readonly Placed[], writer: TileWriter): void {
  const ordered = placed
    .map((each) => ({ each, rank: durationClass(query.axis, each.start, each.end) }))
    .sort((a, b) => (a.rank === b.rank ? a.each.block.birth - b.each.block.birth : b.rank - a.rank));
  const row = (query.high - query.low) / query.rows;
  const top = new Float64Array(query.columns);
  const run = new Float64Array(query.columns);
  const weight = new Float64Array(256); // of the run, by category
  for (const { each } of ordered) {
    const { size } = each.block;
    let shown = false;
    for (let c = each.first; c < each.last; ++c) {
      if (top[c]! + size > query.low && top[c]! < query.high) shown = true;
      top[c]! += size;
    }
    if (shown && size >= row) {
      writer.run(run, weight);
      run.fill(0);
      weight.fill(0);
      writer.block(each);
    } else {
      for (let c = each.first; c < each.last; ++c) run[c]! += size;
      weight[each.block.category]! += size * (each.last - each.first);
    }
  }
  writer.run(run, weight);
}

function selectAddress(query: BlockQuery, placed: readonly Placed[], writer: TileWriter): void {
  const row = (query.high - query.low) / query.rows;
  for (const each of placed) {
    const { size, place: at } = each.block;
    if (size >= row && at + size > query.low && at < query.high) writer.block(each);
  }
}

function spacesOf(recording: Recording, axis: Axis): AddressSpace[] {
  return recording.blocks
    .filter((block) => block.lane === 1)
    .map((block) => ({
      place: block.place,
      size: block.size,
      address: `0x${(0x7f0000000000 + block.place * 2).toString(16)}`,
      label: 'large pool, stream 0',
      lives: [[positionOf(recording, axis, block.birth), positionOf(recording, axis, block.death)] as const],
    }));
}

class TileWriter {
  private readonly items: (Placed | null)[] = [];
  private readonly runBegin: number[] = [0];
  private readonly runCategory = new Map<number, number>(); // by item
  private readonly runColumn: number[] = [];
  private readonly runBytes: number[] = [];

  constructor(
    private readonly recording: Recording,
    private readonly query: BlockQuery,
  ) {}

  block(placed: Placed): void {
    this.items.push(placed);
    this.runBegin.push(this.runColumn.length);
  }

  run(bytes: Float64Array, weight: Float64Array): void {
    if (bytes.every((each) => each === 0)) return;
    for (let c = 0; c < bytes.length; ++c) {
      if (c > 0 ? bytes[c] === bytes[c - 1] : bytes[c] === 0) continue;
      this.runColumn.push(c);
      this.runBytes.push(bytes[c]!);
    }
    this.items.push(null);
    this.runCategory.set(this.items.length - 1, weight.indexOf(Math.max(...weight)));
    this.runBegin.push(this.runColumn.length);
  }

  finish(seen: number, spaces: readonly AddressSpace[]): BlockTile {
    const of = (value: (placed: Placed) => number): number[] => this.items.map((item) => (item === null ? 0 : value(item)));
    const blocks = this.items.filter((item) => item !== null).length;
    return {
      query: this.query,
      row: Uint32Array.from(this.items, (item) => item?.block.row ?? NO_ROW),
      start: Float64Array.from(of((item) => item.start)),
      end: Float64Array.from(of((item) => item.end)),
      size: Float64Array.from(of((item) => item.block.size)),
      place: Float64Array.from(of((item) => item.block.place)),
      stack: Uint32Array.from(of((item) => item.block.stack)),
      key: Uint32Array.from(of((item) => this.recording.stacks[item.block.stack]!.key)),
      category: Uint8Array.from(this.items, (item, i) => item?.block.category ?? this.runCategory.get(i) ?? 0),
      stream: Uint16Array.from(of((item) => item.block.stream)),
      thread: Uint16Array.from(of((item) => item.block.thread)),
      flags: Uint8Array.from(of((item) => flagsOf(item.block))),
      run_begin: Uint32Array.from(this.runBegin),
      run_column: Uint16Array.from(this.runColumn),
      run_bytes: Float64Array.from(this.runBytes),
      hidden: seen - blocks,
      spaces,
    };
  }
}

function flagsOf(block: Block): number {
  return (
    (block.birth === 0 ? BLOCK_FROM_BEFORE : 0) | (block.pending ? BLOCK_PENDING : 0) | (block.death === NEVER ? BLOCK_NOT_FREED : 0)
  );
}
