// What a window of a timeline shows. Answers are binary (slab.ts).

import type { Axis, Layout } from './moments';
import type { Counted, Sampled } from './recording';
import type { Filter } from './tables';

/**
 * What a window of a timeline shows. It has `columns` columns of equal width from `from` to `to`.
 * Column c covers [from + c*w, from + (c+1)*w) (columns.ts). It shows what is live at its peak: after
 * the first of its events after which most bytes of the lane are live.
 */
export interface Window {
  readonly file: number;
  readonly lane: number;
  readonly axis: Axis;
  readonly from: number;
  readonly to: number;
  readonly columns: number; // at most 8,192
}

/** `api/curve`. */
export interface CurveTile {
  readonly window: Window;
  // The event at the midpoint of each column, which translates positions between axes.
  readonly event: Uint32Array;
  readonly peak: Uint32Array; // the event of the peak of each column
  readonly ns: Float64Array;
  readonly series: ReadonlyMap<Counted, CurveSeries>;
  readonly samples: ReadonlyMap<Sampled, SampledSeries>;
  // Bytes live at the peak of each column by category code: [code * columns + c]. Empty until
  // categories are known.
  readonly categories: Float64Array;
}
export interface CurveSeries {
  readonly min: Float64Array; // NaN: unknown there
  readonly max: Float64Array;
  readonly mid: Float64Array; // at the midpoint of the column
}
/**
 * The last sample of each column, or of the columns before it if it has none: on the axis of time by
 * the sample's own time, otherwise by its event. NaN before the first one.
 */
export interface SampledSeries {
  readonly value: Float64Array; // bytes
  readonly ns: Float64Array; // when it was taken
}

/**
 * `api/passing`: the part of the lane that matches a filter, at the peaks of the columns of `curve`.
 */
export interface PassingQuery extends Window {
  readonly filter: Filter;
}
export interface PassingCurve {
  readonly query: PassingQuery;
  // Bytes live at the peak of each column in blocks that match the filter; NaN: unknown there.
  // For a standalone file these are the blocks in it, but without a filter all blocks.
  readonly live: Float64Array;
}

/**
 * `api/predicted`: what would be reserved on the device with other settings of PyTorch's allocator,
 * by a replay (`gpumemtrace whatif`). A standalone file has only the settings that the page offers.
 */
export interface PredictedQuery extends Window {
  readonly settings: string; // 'KEY:VALUE,...' of PYTORCH_ALLOC_CONF
}
export interface PredictedCurve {
  readonly query: PredictedQuery;
  readonly reserved: Float64Array; // the most of each column; NaN: not known
  readonly peak_bytes: number; // of the whole recording
  readonly retries: number;
  readonly failure: number | null; // the event at which a request would fail
}

export interface BlockQuery extends Window {
  readonly layout: Layout;
  readonly low: number; // bytes (stacked) or position in the address space of the lane (address)
  readonly high: number;
  readonly rows: number; // pixels between low and high
}

/**
 * `api/blocks`: what a window shows of single blocks. It contains only blocks that are at least a
 * column long and a row high and that are between low and high somewhere; at most MAX_BLOCKS.
 *
 * stacked: items from the bottom up, in stack order: by duration class, longest first (class =
 * floor(log2(end - start)) on the axis in event or ns or 1/4096 step; a block that is never freed
 * counts as freed at the end),
 * then by birth. An item is a block or a run. A run is what is between two blocks and is not shown
 * itself, and of one category (its bytes per column as a step function). An item is on top of all
 * earlier items that are live in that column. The rest of the column's total, up to the maximum of
 * the live curve, is on top of the last item.
 *
 * address: blocks in any order, with their place; no runs. The address space of a lane is that of
 * its segments, one after the other, without the gaps between them (AddressSpace).
 */
export interface BlockTile {
  readonly query: BlockQuery;
  readonly row: Uint32Array; // NO_ROW: a run
  readonly start: Float64Array; // on the axis; may be before the window
  readonly end: Float64Array; // Infinity: never
  readonly first: Uint16Array; // columns [first, last) at whose peak it is live
  readonly last: Uint16Array;
  readonly size: Float64Array; // bytes
  readonly place: Float64Array; // address: position in the lane's address space
  readonly stack: Uint32Array;
  readonly forward_stack: Uint32Array; // set for memory of a backward pass; otherwise 0
  readonly key: Uint32Array; // stands for the call site, the same in every file and run; determines the colour
  readonly category: Uint8Array; // code
  readonly stream: Uint16Array; // code
  readonly thread: Uint16Array; // code
  readonly role: Uint8Array; // code; 0 until categories are known
  readonly dtype: Uint16Array; // code
  readonly flags: Uint8Array; // BLOCK_* bits
  // Runs: item i has the entries [run_begin[i], run_begin[i + 1]). It has run_bytes[k] from column
  // run_column[k] on.
  readonly run_begin: Uint32Array;
  readonly run_column: Uint16Array;
  readonly run_bytes: Float64Array;
  readonly hidden: number; // blocks in the window that are no item
  readonly spaces: readonly AddressSpace[]; // for layout 'address'
}
export const MAX_BLOCKS = 30_000;
export const BLOCK_FROM_BEFORE = 1; // held when the recording began
export const BLOCK_PENDING = 2; // freed, but then waited for other streams
export const BLOCK_NOT_FREED = 4;

/** The range [place, place + size) of a segment in the lane's address space. */
export interface AddressSpace {
  readonly place: number;
  readonly size: number;
  readonly address: string; // hex
  readonly label: string; // pool and stream
  readonly lives: readonly (readonly [number, number])[]; // on the axis: from, to (Infinity: never)
}
