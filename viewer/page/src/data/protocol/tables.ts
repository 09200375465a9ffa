// Sums over blocks: tables, the flame graph, ranges, segments, answers in words.

import type { Axis, Layout } from './moments';

/** The blocks that a view counts. `from` and `to` are events. */
export interface Scope {
  readonly file: number;
  readonly lane: number;
  readonly filter: Filter;
  // live: held after `to`. growth: held after `to` but not after `from`, minus what was freed
  // between. born: allocated in from..to. kept: allocated there and not freed by `to`.
  readonly of: 'live' | 'growth' | 'born' | 'kept';
  readonly from: number;
  readonly to: number;
}

/** All set fields must match. Empty strings and nulls match anything. */
export interface Filter {
  // In a frame, a file, an address, a name, a tensor's type and shape, or why it was alive; '/…/' is
  // a regular expression.
  readonly text: string;
  readonly category: string;
  readonly stack: number | null;
  readonly forward_stack: number | null;
  readonly key: number | null;
  readonly stream: string;
  readonly thread: string;
  readonly min_size: number | null;
  readonly max_size: number | null;
}

/** `api/flame`, slab: a tree, with parents before children; node 0 is the root. */
export interface FlameTree {
  readonly parent: Uint32Array;
  readonly bytes: Float64Array; // includes everything below the node; may be negative (growth, compare)
  readonly blocks: Float64Array;
  readonly before: Float64Array; // compare: bytes in the other file or moment; otherwise empty
  // Index into FileMeta.categories: the category that has most of a node's bytes, and how many it
  // has; empty in a comparison.
  readonly category: Uint8Array;
  readonly category_bytes: Float64Array;
  readonly name: Uint32Array; // index into names
  readonly names: readonly string[]; // 'function\tfile:line\tkind'
  readonly total: number;
}
export interface FlameQuery extends Scope {
  readonly inverted: boolean; // callers below callees
  readonly folded: boolean; // without noise frames
  readonly other: { readonly file: number; readonly lane: number; readonly to: number } | null;
}

/** `api/table`, JSON: the rows [offset, offset + limit) in that order. */
export interface TableQuery extends Scope {
  readonly by: 'stack' | 'function' | 'file' | 'category' | 'size' | 'stream' | 'thread' | 'block';
  readonly sort: 'bytes' | 'blocks' | 'peak' | 'growth' | 'rate' | 'lifetime' | 'name';
  readonly descending: boolean;
  readonly offset: number;
  readonly limit: number; // at most 500
  readonly sparkline: number; // columns over the whole recording; 0: no sparklines
}
export interface Table {
  readonly rows: readonly TableRow[];
  readonly total_rows: number;
  readonly total_bytes: number;
  readonly total_blocks: number;
}
export interface TableRow {
  readonly id: string; // 'stack/7', 'stack/7+9' (of a backward pass), 'block/123', 'category/3' ...
  readonly name: string;
  readonly where: string; // by function: 'train.py:41'
  readonly bytes: number;
  readonly blocks: number;
  readonly peak_bytes: number;
  readonly mean_size: number;
  readonly median_lifetime_ns: number | null;
  readonly block: TableBlock | null; // by block
  readonly stack: number; // a representative one; 0: none
  readonly sparkline: readonly number[]; // bytes live
}

/** A range of events; `from` equal to `to`: a moment. */
export interface EventRange {
  readonly from: number;
  readonly to: number;
  readonly box: RangeBox | null; // only the blocks in it
}
/**
 * `api/range`, JSON: what a range of events held, allocated and freed; the rows [offset, offset +
 * limit) in that order. Equal rows are ordered by id. A row of one of two ranges has zeros in the
 * other.
 */
export interface RangeQuery extends EventRange {
  readonly file: number;
  readonly lane: number;
  readonly filter: Filter;
  readonly other: EventRange | null; // with which the range is compared
  // Ids of rows, each in the one before it: only what they count. Modules, functions and lines among
  // them, and those of the table, are properties of one frame.
  readonly within: readonly string[];
  readonly by: 'category' | 'role' | 'dtype' | 'module' | 'function' | 'line' | 'stack' | 'thread' | 'stream';
  readonly folded: boolean; // by module, function or line: without noise frames, as in flame graphs
  // mean_bytes: byte-seconds per second; of a range without a duration what is held at its end.
  // allocation_rate: allocations per second; 0 without a duration.
  readonly sort: 'bytes' | 'inclusive' | 'byte_seconds' | 'mean_bytes' | 'allocations' | 'allocation_rate' | 'growth' | 'end_bytes' | 'name';
  // Which amounts are sorted, if there is another range; difference: of the range minus the other.
  readonly side: 'this' | 'other' | 'difference';
  readonly descending: boolean;
  readonly offset: number;
  readonly limit: number; // at most 500
}
/**
 * The part of a picture between two heights or places, over the events of a query. By address a
 * block is in it if its memory is, in part, at any time of the range. In the stacked layout it is
 * in the box if it is at one of 256 moments: the peaks of as many parts of the range of equal
 * width on the axis, and its last event. Blocks are counted whole.
 */
export interface RangeBox {
  readonly axis: Axis; // the order of a stack depends on it
  readonly layout: Layout;
  readonly low: number; // bytes, or position in the lane's address space
  readonly high: number;
}
export interface RangeTable extends RangeTotal {
  readonly rows: readonly RangeRow[];
  readonly total_rows: number;
  readonly other: RangeTotal | null;
}
export interface RangeTotal {
  readonly total: RangeAmounts;
  // The first of the events from..to after which most of the lane is live, with or without a filter;
  // with a box, the first of its moments after which the blocks in it hold most.
  readonly peak_event: number;
  readonly peak_ns: number;
  readonly from_ns: number;
  readonly to_ns: number;
}
export interface RangeAmounts {
  readonly bytes: number; // at the peak
  readonly byte_seconds: number; // bytes times the seconds of the range in which they were held
  readonly allocations: number; // in the range
  readonly growth: number; // held at its end minus held at its beginning
  readonly end_bytes: number; // held at its end
}
/**
 * A module, function or line counts the blocks of which it is the program's own frame. So do rows
 * within one.
 */
export interface RangeRow extends RangeMeasures {
  readonly id: string; // 'category/3', 'role/a parameter', 'dtype/bfloat16', 'line/train.py:41'
  readonly name: string;
  readonly where: string; // for a line: its function in `stack`
  readonly other: RangeMeasures | null; // in the other range
  readonly stack: number; // one that it counts; 0: none
}
export interface RangeMeasures extends RangeAmounts {
  // Bytes at the peak with such a frame anywhere on their stack; null: does not apply.
  readonly inclusive: number | null;
}

export interface TableBlock {
  readonly address: string; // hex
  readonly category: string;
  readonly birth: number; // event; 0: before the recording
  readonly birth_ns: number;
}

/** `api/segments?event=`, JSON: the allocator's state after that event. */
export interface Segments {
  readonly event: number;
  readonly ns: number;
  readonly what: string; // the event in words: 'alloc 12 MiB at 0x… (train.py:41)'
  readonly row: number; // the block of the event; NO_ROW
  readonly segments: readonly SegmentState[]; // by pool, stream, address
  readonly live_bytes: number;
  readonly reserved_bytes: number;
  readonly largest_hole: number;
}
export interface SegmentState {
  readonly address: string;
  readonly size: number;
  readonly pool: string;
  readonly stream: string;
  readonly expandable: boolean;
  readonly stack: number;
  // Blocks, held or waiting for a stream, by offset; holes are between them.
  readonly offset: readonly number[];
  readonly bytes: readonly number[];
  readonly requested: readonly number[]; // -1: unknown
  readonly row: readonly number[];
  readonly pending: readonly number[]; // 1: freed, waiting
  readonly category: readonly number[];
  readonly key: readonly number[];
}

/** `api/answer?name=`, JSON: the outputs of `gpumemtrace NAME --json` and of `gpumemtrace NAME`. */
export interface Answer {
  readonly name: AnswerName;
  readonly headline: string; // the first line
  readonly text: string;
  readonly json: unknown; // docs/schemas
}
export type AnswerName = 'report' | 'oom' | 'leaks' | 'ledger' | 'frag';

/** `api/compare?file=&other=`, JSON: two files on one axis. */
export interface Compare {
  readonly headline: string;
  readonly json: unknown; // as `gpumemtrace diff --json`
  readonly aligned_by: 'step' | 'time' | 'event';
  readonly steps: readonly (readonly [number, number])[]; // begin events: in file, in other
}

/**
 * `api/find`, JSON: blocks that match a filter, by birth. `after` is the last row of the previous
 * page.
 */
export interface Found {
  readonly rows: readonly number[];
  readonly birth: readonly number[];
  readonly death: readonly number[];
  readonly size: readonly number[];
  readonly total: number;
}
