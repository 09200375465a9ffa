// The questions that the page asks and the answers that it gets, from the server (http_source.ts;
// C++ in viewer/server, viewer/index, viewer/questions) or from the standalone file that the page
// is (embedded_source.ts).
//
// There are three ways to name a moment:
//   event  number of births and deaths of memory so far; used by cursors, links and JSON
//   time   ns since the recording began
//   step   of the training loop, from 1: 12.25 is a quarter (of its events) into step 12
// An Axis is one of them. A position on it is a plain number. Events order everything; two events
// may have the same time.
//
// A lane is what a timeline shows: the memory of one heap on one device, or host memory. Heaps are
// layers (PyTorch's blocks are in the driver's segments), so lanes must not be added up.
//
// Terms: block (one piece of memory from birth to death), band (its picture in the stacked layout),
// rest (what is too small or too short to be a band), segment (driver memory in which a caching
// allocator places its blocks), stack, lane, step, mark, phase.

export const PROTOCOL_VERSION = 1;

export type Axis = 'time' | 'event' | 'step';
export type Layout = 'stacked' | 'address';

/** The event number of a block that was never freed, and the row number that means no block. */
export const NEVER = 0xffffffff;
export const NO_ROW = 0xffffffff;

/** `api/meta`, JSON. */
export interface Meta {
  readonly protocol: typeof PROTOCOL_VERSION;
  readonly version: string; // of gpumemtrace
  readonly door: 'server' | 'file';
  readonly files: readonly FileMeta[];
}

export interface FileMeta {
  readonly file: number; // index, used as `file` in every question
  readonly name: string; // without folder
  readonly path: string;
  readonly imported_from: string; // '' if recorded by gpumemtrace
  readonly pid: number;
  readonly rank: number | null;
  readonly argv: readonly string[];
  readonly start_unix_ns: string; // decimal, because it does not fit a number
  readonly end_ns: number;
  readonly events: number;
  readonly lanes: readonly LaneMeta[]; // the first one is shown initially
  readonly categories: readonly string[]; // index = code; 0 is 'unknown'
  readonly streams: readonly string[]; // index = code, as the recording writes them
  readonly threads: readonly string[];
  readonly steps: StepsMeta;
  readonly phases: readonly SpanMeta[];
  readonly ranges: readonly SpanMeta[]; // NVTX and record_function; at most 10,000, the longest
  readonly marks: readonly InstantMeta[];
  readonly snapshots: readonly InstantMeta[];
  readonly ooms: readonly OomMeta[]; // failed allocations that counted
  readonly retries: readonly InstantMeta[]; // the allocator emptied its cache and tried again
  readonly losses: readonly InstantMeta[]; // events are missing here
  readonly lacks: readonly string[]; // what the file lacks, as sentences for people
  readonly omitted: Omitted | null; // for a standalone file
  readonly live?: LiveMeta; // for a live recording
}

/**
 * A live recording is known as a window of its newest events, which comes in generations. Events
 * and rows are numbered within the window. The page names the window (`window`) with each question,
 * and converts what it keeps when the window changes.
 */
export interface LiveMeta {
  readonly generation: number;
  readonly window: number;
  readonly first_window: number; // first window of the followed recording; a higher number means another recording
  readonly names: number; // changes when frames got names
  readonly begin_ns: number; // of the window
  readonly dropped_events: number; // before the window
}

export interface LaneMeta {
  readonly lane: number;
  readonly device: number; // -1: host
  readonly heap: string;
  readonly label: string; // 'GPU 0 · PyTorch blocks'
  readonly blocks: number;
  readonly peak_bytes: number;
  readonly peak_event: number;
  readonly end_bytes: number;
  readonly capacity_bytes: number | null; // of the device, if known
  // Keys of the call sites that hold most at the peak, the largest first; at most 12. Empty for a live
  // recording, and until blocks are known.
  readonly sites: readonly number[];
  readonly has_segments: boolean; // layout 'address' shows segments as ranges of addresses
  readonly series: readonly Series[]; // the series that Curve provides
}

// The first two are known after each event, the others where they were sampled.
export type Series = Counted | Sampled;
export type Counted = 'live' | 'reserved';
export type Sampled = 'driver_used' | 'process_used';

/** Steps of the training loop. Step i+1 has the events begin[i]+1..end[i]. */
export interface StepsMeta {
  readonly source: string; // '' if none were found
  readonly inferred: boolean;
  readonly begin: readonly number[];
  readonly end: readonly number[];
  readonly begin_ns: readonly number[];
  readonly end_ns: readonly number[];
}

export interface SpanMeta {
  readonly name: string;
  readonly kind: string; // 'forward', 'backward', 'optimizer', 'other'; for ranges their domain
  readonly begin: number; // events
  readonly end: number;
  readonly begin_ns: number;
  readonly end_ns: number;
  readonly depth: number; // nesting within a thread: 0 is the outermost
  readonly thread: number; // code
}

export interface InstantMeta {
  readonly name: string;
  readonly event: number;
  readonly ns: number;
}

export interface OomMeta extends InstantMeta {
  readonly device: number;
  readonly requested: number;
  readonly stack: number;
}

/** What a standalone file left out to stay small. */
export interface Omitted {
  readonly blocks: number;
  readonly smaller_than: number; // bytes; all larger blocks are in the file
  readonly peak_bytes: number; // bytes at the peak of the first lane that are in no block of the file
  readonly time_error_ns: number; // maximum error of the times of events
}

/** `api/progress`, JSON. In Meta, files of state 'loading' have no lanes yet. */
export interface Progress {
  readonly files: readonly FileProgress[];
}
export interface FileProgress {
  readonly file: number;
  // coarse: curves; blocks: everything but categories and answers; ready: all
  readonly state: 'loading' | 'coarse' | 'blocks' | 'ready' | 'failed';
  readonly what: string; // 'reading events', for people
  readonly fraction: number; // 0..1
  readonly error: string; // of 'failed', with advice
  readonly live?: LiveProgress; // for a live recording
  readonly so_far?: SoFar; // while the state is 'loading'
}

/** A first picture of a recording that is being read. */
export interface SoFar {
  readonly share: number; // of the file, 0..1
  // The most important ones.
  readonly lanes: readonly {
    readonly label: string;
    readonly bytes: number; // held at the last event read so far
    readonly most: readonly number[]; // maximum bytes in periods with equal numbers of events
  }[];
}

export interface LiveProgress {
  readonly state: 'following' | 'lost' | 'ended';
  readonly words: string; // for people; '' if there is nothing to report
  readonly name: string; // 'process 4711'
  readonly generation: number; // the generation of Meta
  readonly now_ns: number; // in the recording's time
  readonly age_ns: number; // how much older the blocks are
  readonly events_per_second: number;
  readonly heaps: readonly { readonly device: number; readonly heap: string; readonly live_bytes: number; readonly live_blocks: number }[];
}

/**
 * `api/moved?file=&from=&to=&row=`: the row in window `to` of a block of window `from`, or NO_ROW
 * if it is gone.
 */
export interface Moved {
  readonly row: number;
}

// -- Tiles: binary (slab.ts) ---------------------------------------------------------------------

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
  readonly forward_stack: Uint32Array; // of memory of a backward pass; otherwise 0
  readonly key: Uint32Array; // of the call site, the same in every file and run; determines the colour
  readonly category: Uint8Array; // code
  readonly stream: Uint16Array; // code
  readonly thread: Uint16Array; // code
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

// -- Details: JSON --------------------------------------------------------------------------------

export interface Frame {
  readonly function: string;
  readonly file: string;
  readonly line: number; // 0: unknown
  readonly library: string;
  readonly kind: 'python' | 'native' | 'user' | 'folded'; // user: the program's own; folded: noise
}

/** `api/stacks?ids=1,2,3`, in that order. */
export interface StackInfo {
  readonly stack: number;
  readonly key: number;
  // As in `report --json`, like every label of memory: 'main (train.py:20) > MLP.forward (gpt.py:88)'.
  readonly label: string;
  readonly site: string; // of all stacks with this key: 'main (train.py) > MLP.forward (gpt.py)'
  // For memory of a backward pass the label is `backward_of` of its stack, and `line` of that of the
  // forward pass (labelOf in stack_cache.ts).
  readonly backward_of: string; // 'backward of '
  readonly line: string;
  readonly frames: readonly Frame[]; // innermost first
}

/** `api/block?row=`. */
export interface BlockDetails {
  readonly row: number;
  readonly lane: number;
  readonly address: string; // hex
  readonly size: number;
  readonly requested: number | null;
  readonly name: string;
  readonly category: string;
  readonly reason: string; // why that category
  readonly confidence: string;
  readonly stream: string;
  readonly thread: string;
  readonly pool: string;
  readonly tensor: string; // type and shape of the tensor it was allocated for; '' if unknown
  readonly alive: string; // why it was alive; '' if unknown
  readonly birth: number; // event; 0: before the recording
  readonly birth_ns: number;
  readonly death: number; // NEVER
  readonly death_ns: number | null;
  readonly completed: number; // event after which it could be used again; NEVER
  readonly completed_ns: number | null;
  readonly step: number | null; // of the training loop
  readonly phase: string;
  readonly stack: StackInfo;
  readonly free_stack: StackInfo | null;
  readonly forward_stack: StackInfo | null; // for a block born in a backward pass
  readonly segment: { readonly address: string; readonly size: number; readonly offset: number } | null;
  readonly before: Neighbour | null; // in the segment, at its birth
  readonly after: Neighbour | null;
  readonly same_stack: { readonly blocks: number; readonly live_bytes: number; readonly peak_bytes: number };
}
export interface Neighbour {
  readonly row: number; // NO_ROW: a hole
  readonly size: number;
  readonly label: string;
}

/** `api/source?file=&path=&line=`: the lines around a line that a stack of the recording names. */
export interface SourceText {
  readonly path: string;
  readonly first: number;
  readonly lines: readonly string[]; // empty if not available
  readonly note: string;
}

// -- Aggregates -----------------------------------------------------------------------------------

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
  readonly bytes: Float64Array; // of the node and everything below it; may be negative (growth, compare)
  readonly blocks: Float64Array;
  readonly before: Float64Array; // compare: bytes in the other file or moment; otherwise empty
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

/**
 * `api/range`, JSON: what a range of events held, allocated and freed; the rows [offset, offset +
 * limit) in that order. Equal rows are ordered by id. `from` equal to `to`: what was held then.
 */
export interface RangeQuery {
  readonly file: number;
  readonly lane: number;
  readonly filter: Filter;
  readonly from: number; // events
  readonly to: number;
  readonly by: 'category' | 'role' | 'dtype' | 'module' | 'function' | 'line' | 'stack' | 'thread' | 'stream';
  readonly sort: 'bytes' | 'inclusive' | 'byte_seconds' | 'allocations' | 'growth' | 'name';
  readonly descending: boolean;
  readonly offset: number;
  readonly limit: number; // at most 500
}
export interface RangeTable {
  readonly rows: readonly RangeRow[];
  readonly total_rows: number;
  readonly total: RangeAmounts;
  // The first of the events from..to after which most of the lane is live, with or without a filter.
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
}
/** A module, function or line counts the blocks of which it is the program's own frame. */
export interface RangeRow extends RangeAmounts {
  readonly id: string; // 'category/3', 'role/a parameter', 'dtype/bfloat16', 'line/train.py:41'
  readonly name: string;
  readonly where: string; // of a line the function in `stack`
  readonly inclusive: number | null; // bytes at the peak with it anywhere on their stack; null: does not apply
  readonly stack: number; // one that it counts; 0: none
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
  readonly row: number; // of the block of the event; NO_ROW
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
