// Selects the blocks that a window shows and the runs between them, by the rules of BlockTile
// (protocol.ts), over the arrays of a standalone file. viewer/index has the same rules in C++ for
// recordings too large for a browser.

import { firstColumn, widthOf } from '../columns';
import { type BlockQuery, MAX_BLOCKS } from '../protocol';
import { ColumnHeights } from './column_heights';
import type { Lane } from './lane_data';
import type { LaneIndex } from './lane_index';

/**
 * The selected blocks in stack order, each preceded by a run of the unselected blocks below it, if
 * any.
 */
export interface StackedItems {
  /** Index of a block, or -1 for a run. */
  readonly item: number[];
  /** For a run, the category with the most bytes times columns; of equal ones the lowest code. */
  readonly category: number[];
  readonly runBegin: number[];
  readonly runColumn: number[];
  readonly runBytes: number[];
}

/**
 * Returns the columns whose midpoint is in [start, end): the first one, and the one after the last.
 */
function columnsOf(query: BlockQuery, start: number, end: number): readonly [number, number] {
  return [firstColumn(query, start), firstColumn(query, end)];
}

export function selectStacked(query: BlockQuery, lane: Lane, index: LaneIndex): StackedItems {
  const rowBytes = (query.high - query.low) / query.rows;
  const sizeOf = (block: number): number => lane.kinds.size[lane.blocks.kind[block]!]!;
  const candidates: number[] = [];
  index.forEach(query.from, query.to, widthOf(query), (block) => candidates.push(block));
  const shown = limitToLargest(
    candidates.filter(shownBetween(query, rowBytes, index, sizeOf)),
    sizeOf,
  );
  const categoryOf = (block: number): number => lane.kinds.category[lane.blocks.kind[block]!]!;
  return withRuns(candidates, shown, query, rowBytes, index, sizeOf, categoryOf);
}

/**
 * Returns a test whether a block is high enough and visible in the window. It must be called in
 * stack order.
 */
function shownBetween(
  query: BlockQuery,
  rowBytes: number,
  index: LaneIndex,
  sizeOf: (block: number) => number,
): (block: number) => boolean {
  const heights = new ColumnHeights(query.columns);
  return (block) => {
    const [from, to] = columnsOf(query, index.start[block]!, index.end[block]!);
    const size = sizeOf(block);
    if (from >= to) return false;
    const shown = size >= rowBytes && heights.hasBetween(from, to, query.low - size, query.high);
    heights.add(from, to, size);
    return shown;
  };
}

function limitToLargest(blocks: number[], sizeOf: (block: number) => number): Set<number> {
  if (blocks.length <= MAX_BLOCKS) return new Set(blocks);
  return new Set([...blocks].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, MAX_BLOCKS));
}

function withRuns(
  candidates: readonly number[],
  shown: ReadonlySet<number>,
  query: BlockQuery,
  rowBytes: number,
  index: LaneIndex,
  sizeOf: (block: number) => number,
  categoryOf: (block: number) => number,
): StackedItems {
  const out: StackedItems = { item: [], category: [], runBegin: [0], runColumn: [], runBytes: [] };
  const run = new Run(query.columns, rowBytes / 4);
  for (const block of candidates) {
    const [from, to] = columnsOf(query, index.start[block]!, index.end[block]!);
    if (from >= to) continue;
    if (!shown.has(block)) {
      run.add(from, to, sizeOf(block), categoryOf(block));
      continue;
    }
    const category = run.mainCategory();
    if (run.flush(out)) {
      out.item.push(-1);
      out.category.push(category);
      out.runBegin.push(out.runColumn.length);
    }
    out.item.push(block);
    out.category.push(categoryOf(block));
    out.runBegin.push(out.runColumn.length);
  }
  // What is left is on top of the last block and belongs to the rest.
  return out;
}

/**
 * The bytes by column between two shown blocks. Small changes are deferred. The place of a block is
 * the sum of all runs below it, so each column remembers how much was deferred.
 */
class Run {
  private readonly change: Float64Array; // of bytes, from the previous column to this one
  private readonly error: Float64Array; // by column: bytes written so far, minus the actual ones
  private readonly weight = new Float64Array(256); // bytes times columns, by category
  private empty = true;

  constructor(
    private readonly columns: number,
    private readonly tolerance: number,
  ) {
    this.change = new Float64Array(columns + 1);
    this.error = new Float64Array(columns);
  }

  add(from: number, to: number, bytes: number, category: number): void {
    this.weight[category]! += bytes * (to - from);
    this.change[from]! += bytes;
    this.change[to]! -= bytes;
    this.empty = false;
  }

  mainCategory(): number {
    return this.empty ? 0 : this.weight.indexOf(Math.max(...this.weight));
  }

  /** Writes the run and clears it. Returns false if no change was large enough. */
  flush(out: StackedItems): boolean {
    if (this.empty) return false;
    const begin = out.runColumn.length;
    let bytes = 0;
    let written = 0;
    for (let c = 0; c < this.columns; c++) {
      bytes += this.change[c]!;
      let error = this.error[c]! + written - bytes;
      if (Math.abs(error) > this.tolerance) {
        written = Math.max(0, bytes - this.error[c]!);
        error = this.error[c]! + written - bytes;
        out.runColumn.push(c);
        out.runBytes.push(written);
      }
      this.error[c] = error;
    }
    this.change.fill(0);
    this.weight.fill(0);
    this.empty = true;
    return out.runColumn.length > begin;
  }
}

/** Selects blocks for the layout 'address' by their place, in any order. */
export function selectPlaces(
  query: BlockQuery,
  lane: Lane,
  index: LaneIndex,
  placeOf: (block: number) => number,
): number[] {
  const rowBytes = (query.high - query.low) / query.rows;
  const sizeOf = (block: number): number => lane.kinds.size[lane.blocks.kind[block]!]!;
  const shown: { readonly block: number; readonly area: number }[] = [];
  index.forEach(query.from, query.to, widthOf(query), (block) => {
    const size = sizeOf(block);
    const place = placeOf(block);
    if (size < rowBytes || !(place < query.high && place + size > query.low)) return;
    const [from, to] = columnsOf(query, index.start[block]!, index.end[block]!);
    if (from < to) shown.push({ block, area: size * (to - from) });
  });
  if (shown.length > MAX_BLOCKS) shown.sort((a, b) => b.area - a.area);
  return shown.slice(0, MAX_BLOCKS).map(({ block }) => block);
}
