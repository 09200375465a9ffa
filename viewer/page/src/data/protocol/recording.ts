// What a recording contains, and how far it has been read.

import type { PROTOCOL_VERSION } from './moments';

/** `api/meta`, JSON. */
export interface Meta {
  readonly protocol: typeof PROTOCOL_VERSION;
  readonly version: string; // gpumemtrace's
  readonly origin: 'server' | 'file'; // from which the page came
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
  // Why memory is alive: 'unknown', 'a parameter' ...; index = code. Empty: PyTorch reported no roles.
  readonly roles: readonly string[];
  readonly dtypes: readonly string[]; // types of tensors; index = code, 0 is 'unknown'
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
  readonly begin_ns: number; // when the window begins
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
  readonly peak_reserved_bytes: number | null; // the most that was reserved on the device; null without that series
  readonly capacity_bytes: number | null; // memory of the device, if known
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
export function isSampled(series: Series): series is Sampled {
  return series === 'driver_used' || series === 'process_used';
}

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
  // waiting: is loaded when the user opens it; coarse: curves; blocks: everything but categories and
  // answers; ready: all
  readonly state: 'waiting' | 'loading' | 'coarse' | 'blocks' | 'ready' | 'failed';
  readonly what: string; // 'reading events', for people
  readonly fraction: number; // 0..1
  readonly error: string; // why it failed, with advice
  readonly live?: LiveProgress; // for a live recording
  readonly so_far?: SoFar; // while the state is 'loading'
}

/** A first picture of a recording that is being read. */
export interface SoFar {
  readonly share: number; // how much of the file was read, 0..1
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
