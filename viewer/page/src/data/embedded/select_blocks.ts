// Selects the blocks that a window shows and the runs between them, by the rules of BlockTile
// (protocol.ts), over the arrays of a standalone file. viewer/index has the same rules in C++ for
// recordings too large for a browser.

import { lowerBound } from '../../base/binary_search';
import { widthOf } from '../columns';
import { type BlockQuery, MAX_BLOCKS } from '../protocol';
import { ColumnHeights } from './column_heights';
import type { Blocks, Lane } from './lane_data';
import type { LaneIndex } from './lane_index';
import type { ColumnEvents } from './select_curve';

/**
 * The selected blocks in stack order, each preceded by a run of the unselected blocks below it, if
 * any.
 */
export interface StackedItems {
  /** Index of a block, or -1 for a run. */
  readonly item: number[];
  readonly category: number[];
  readonly runBegin: number[];
  readonly runColumn: number[];
  readonly runBytes: number[];
}

/** Returns the columns [first, last) at whose peak a block is live. */
export function columnsOf(block: number, { birth, death }: Blocks, { peak, known }: ColumnEvents): readonly [number, number] {
  const first = Math.max(known.from, lowerBound(peak, birth[block]!));
  return [first, Math.max(first, lowerBound(peak, death[block]!))];
}

export function selectStacked(query: BlockQuery, lane: Lane, index: LaneIndex, columns: ColumnEvents): StackedItems {
  const rowBytes = (query.high - query.low) / query.rows;
  const candidates: Candidate[] = [];
  index.forEach(query.from, query.to, widthOf(query), (block) => {
    const [from, to] = columnsOf(block, lane.blocks, columns);
    const kind = lane.blocks.kind[block]!;
    if (from < to) candidates.push({ block, from, to, size: lane.kinds.size[kind]!, category: lane.kinds.category[kind]! });
  });
  const shown = limitToLargest(candidates.filter(shownBetween(query, rowBytes)));
  return withRuns(candidates, shown, query.columns, rowBytes);
}

interface Candidate {
  readonly block: number;
  readonly from: number; // columns
  readonly to: number;
  readonly size: number;
  readonly category: number;
}

/**
 * Returns a test whether a block is high enough and visible in the window. It must be called in
 * stack order.
 */
function shownBetween(query: BlockQuery, rowBytes: number): (candidate: Candidate) => boolean {
  const heights = new ColumnHeights(query.columns);
  return ({ from, to, size }) => {
    const shown = size >= rowBytes && heights.hasBetween(from, to, query.low - size, query.high);
    heights.add(from, to, size);
    return shown;
  };
}

function limitToLargest(candidates: readonly Candidate[]): Set<Candidate> {
  if (candidates.length <= MAX_BLOCKS) return new Set(candidates);
  return new Set([...candidates].sort((a, b) => b.size - a.size).slice(0, MAX_BLOCKS));
}

function withRuns(candidates: readonly Candidate[], shown: ReadonlySet<Candidate>, columns: number, rowBytes: number): StackedItems {
  const out: StackedItems = { item: [], category: [], runBegin: [0], runColumn: [], runBytes: [] };
  const runs = new Runs(columns, rowBytes / 4);
  const add = (item: number, category: number): void => {
    out.item.push(item);
    out.category.push(category);
    out.runBegin.push(out.runColumn.length);
  };
  for (const candidate of candidates) {
    if (!shown.has(candidate)) {
      runs.add(candidate);
      continue;
    }
    runs.flush(out, (category) => add(-1, category));
    add(candidate.block, candidate.category);
  }
  // What is left is on top of the last block and belongs to the rest.
  return out;
}

/**
 * The bytes by category and column between two shown blocks. Small changes are deferred, also to the
 * next category. The place of a block is the sum of all runs below it, so each column remembers how
 * much was deferred.
 */
class Runs {
  private readonly changes = new Map<number, Float64Array>(); // by category: bytes, from the previous column to this one
  private readonly error: Float64Array; // by column: bytes written so far, minus the actual ones

  constructor(
    private readonly columns: number,
    private readonly tolerance: number,
  ) {
    this.error = new Float64Array(columns);
  }

  add({ from, to, size, category }: Candidate): void {
    let change = this.changes.get(category);
    if (change === undefined) this.changes.set(category, (change = new Float64Array(this.columns + 1)));
    change[from]! += size;
    change[to]! -= size;
  }

  /** Writes a run for each category, calls `written` after it, and clears all. */
  flush(out: StackedItems, written: (category: number) => void): void {
    for (const [category, change] of [...this.changes].sort(([a], [b]) => a - b)) {
      const begin = out.runColumn.length;
      this.write(change, out);
      if (out.runColumn.length > begin) written(category);
    }
    this.changes.clear();
  }

  private write(change: Float64Array, out: StackedItems): void {
    let bytes = 0;
    let written = 0;
    for (let c = 0; c < this.columns; c++) {
      bytes += change[c]!;
      let error = this.error[c]! + written - bytes;
      if (Math.abs(error) > this.tolerance) {
        written = Math.max(0, bytes - this.error[c]!);
        error = this.error[c]! + written - bytes;
        out.runColumn.push(c);
        out.runBytes.push(written);
      }
      this.error[c] = error;
    }
  }
}

/** Selects blocks for the layout 'address' by their place, in any order. */
export function selectPlaces(
  query: BlockQuery,
  lane: Lane,
  index: LaneIndex,
  columns: ColumnEvents,
  placeOf: (block: number) => number,
): number[] {
  const rowBytes = (query.high - query.low) / query.rows;
  const sizeOf = (block: number): number => lane.kinds.size[lane.blocks.kind[block]!]!;
  const shown: { readonly block: number; readonly area: number }[] = [];
  index.forEach(query.from, query.to, widthOf(query), (block) => {
    const size = sizeOf(block);
    const place = placeOf(block);
    if (size < rowBytes || !(place < query.high && place + size > query.low)) return;
    const [from, to] = columnsOf(block, lane.blocks, columns);
    if (from < to) shown.push({ block, area: size * (to - from) });
  });
  if (shown.length > MAX_BLOCKS) shown.sort((a, b) => b.area - a.area);
  return shown.slice(0, MAX_BLOCKS).map(({ block }) => block);
}
