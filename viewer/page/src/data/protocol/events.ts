// The list of what happened, in order. Answers are JSON.

/** The index of a kind is its bit in EventsQuery.kinds. */
export const EVENT_KINDS = [
  'alloc',
  'free', // can be used again at once
  'free_requested', // still in use by another stream
  'free_completed', // that stream is done
  'free_refused', // by the driver
  'segment_alloc', // driver memory in which an allocator places its blocks
  'segment_free',
  'map',
  'unmap',
  'failed', // an allocation failed
  'action', // what an allocator did according to the events: a retry, an emptied cache
  'recorded_action', // what a framework reported that its allocator did
  'mark',
  'snapshot',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];
export const ALL_EVENT_KINDS = 2 ** EVENT_KINDS.length - 1;

/**
 * `api/events`: what happened on the device of a lane, in all its heaps: the entries [offset, offset +
 * limit) of these kinds.
 */
export interface EventsQuery {
  readonly file: number;
  readonly lane: number;
  readonly kinds: number;
  readonly offset: number;
  readonly limit: number; // at most 500
  readonly event: number; // whose position is requested
}
export interface EventPage {
  readonly rows: readonly EventRow[];
  readonly total: number; // entries of these kinds
  // Where the first entry of the query's `event` is among those of these kinds; if it has none, the
  // last entry before it, or 0.
  readonly position: number;
  readonly counts: readonly number[]; // how many entries there are, by kind
  readonly note: string; // what this file lacks, for people
}
/** Births and deaths of memory have an event of their own, other entries come after their event. */
export interface EventRow {
  readonly event: number;
  readonly ns: number;
  readonly kind: EventKind;
  readonly row: number; // the block or segment; NO_ROW if there is none
  readonly bytes: number | null;
  readonly address: string; // hex; '': none
  readonly heap: string; // '' for marks and the like
  readonly stream: string;
  readonly text: string; // the label of its stack, or the name of a mark
}
