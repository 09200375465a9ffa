// The state that all views share: one immutable State, changed through a Store.

import { ALL_EVENT_KINDS, type Axis, type EventRange, type Filter, type Layout, type Meta, type Progress, type RangeQuery, type Scope, type TableQuery } from '../data/protocol';
import type { Note } from './notes';

export type ViewName = 'overview' | 'timeline' | 'flame' | 'table' | 'segments' | 'leaks' | 'oom' | 'ledger' | 'frag' | 'compare' | 'lanes' | 'ranks';

export type ColorBy = 'category' | 'role' | 'dtype' | 'stack' | 'size' | 'age' | 'stream' | 'thread';

export interface SelectedRange extends EventRange {
  readonly kind: 'range';
}

/** What is selected. It is data from which panels render, never a node of the page. */
export type Selection =
  | { readonly kind: 'none' }
  | { readonly kind: 'block'; readonly row: number }
  | { readonly kind: 'stack'; readonly stack: number }
  | { readonly kind: 'instant'; readonly event: number }
  | SelectedRange;

export interface State {
  readonly meta: Meta | null;
  readonly progress: Progress | null;
  /** When the connection to the server broke, as Date.now() reports it; null: it has not. */
  readonly lostAt: number | null;
  readonly view: ViewName;
  readonly file: number;
  readonly other: number | null; // compare
  readonly lane: number;
  readonly axis: Axis;
  readonly layout: Layout;
  readonly colorBy: ColorBy;
  /** Settings of PyTorch's allocator whose reserved memory the timeline predicts; '': as recorded. */
  readonly whatif: string;
  /** For a live recording: timelines end at its newest event and move with it. */
  readonly following: boolean;
  /** The range that timelines show, on the axis. */
  readonly range: { readonly from: number; readonly to: number };
  /** The same range in events; the "range" of the flame graph and the table. */
  readonly rangeEvents: { readonly from: number; readonly to: number };
  /** The bytes or addresses that timelines show; null: all. */
  readonly band: { readonly low: number; readonly high: number } | null;
  /** The event of the cursor; null: the lane's peak. */
  readonly cursor: number | null;
  /** The event of the other file that is compared with the cursor; null: its peak. */
  readonly otherCursor: number | null;
  /** The second cursor, from which growth is measured. */
  readonly base: number | null;
  readonly selection: Selection;
  /** Range A, with which the breakdown compares the selected one, B. */
  readonly rangeA: EventRange | null;
  readonly filter: Filter;
  /** What the flame graph and the table count. */
  readonly of: Scope['of'];
  readonly flame: FlameOptions;
  readonly table: TableOptions;
  readonly list: EventListOptions;
  readonly breakdown: BreakdownOptions;
  readonly lanes: LanesOptions;
  /** The range that the lanes show, on their common axis (LaneAxis.base); null: all. */
  readonly lanesRange: { readonly from: number; readonly to: number } | null;
  /**
   * The position at which a click on a lane chose the cursor's event, which may have happened long
   * before; null: none did.
   */
  readonly lanesCursor: { readonly event: number; readonly position: number } | null;
  readonly notes: readonly Note[];
  readonly theme: 'system' | 'light' | 'dark';
}

export interface FlameOptions {
  readonly inverted: boolean; // callers below callees
  readonly folded: boolean; // without noise frames
  readonly icicle: boolean; // the root on top
  readonly focus: number; // hash of the path of the frame that fills the width; 0: the root
  readonly search: string;
  readonly compare: boolean; // with the other file
  readonly byCategory: boolean; // coloured by the category that has most of a frame's bytes
}

/** The panel beside the timeline. */
export interface BreakdownOptions {
  readonly open: boolean;
  /**
   * follow: the selected range, otherwise the moment at the pointer, the cursor's, or what the
   * timeline shows. range: the selected range, otherwise what the timeline shows. cursor: its
   * moment. compare: what changed from the second cursor to the pointer or the cursor. ranges: as
   * range, compared with range A.
   */
  readonly of: 'follow' | 'range' | 'cursor' | 'compare' | 'ranges';
  /** By what rows are divided, and then the rows in them; at least one, each once. */
  readonly levels: readonly RangeQuery['by'][];
  readonly folded: boolean; // by function or line: without noise frames
  readonly sort: RangeQuery['sort']; // if two ranges are compared, the measure that is shown
  readonly side: 'name' | RangeQuery['side']; // if two ranges are compared, the column by which rows are sorted
  readonly descending: boolean;
}

/** The list of events beside the segments. */
export interface EventListOptions {
  readonly open: boolean;
  readonly kinds: number; // EventsQuery
}

/** How lanes share an axis: by the clock, each from its own beginning, or step by step. */
export type LaneAlignment = 'clock' | 'start' | 'step';

/** Several lanes on one axis. A lane is named 'FILE.LANE' (idOf in lane_list.ts). */
export interface LanesOptions {
  readonly align: LaneAlignment | null; // null: what suits the recordings
  readonly order: readonly string[]; // from the top, once lanes were moved; lanes that it does not name follow
  readonly pinned: readonly string[];
  readonly toggled: readonly string[]; // lanes that are shown if they are not by default, and the reverse
}

export interface TableOptions {
  readonly by: TableQuery['by'];
  readonly sort: TableQuery['sort'];
  readonly descending: boolean;
}

export const NO_FILTER: Filter = {
  text: '',
  category: '',
  stack: null,
  forward_stack: null,
  key: null,
  stream: '',
  thread: '',
  min_size: null,
  max_size: null,
};

export const INITIAL_STATE: State = {
  meta: null,
  progress: null,
  lostAt: null,
  view: 'overview',
  file: 0,
  other: null,
  lane: 0,
  axis: 'event', // on the time axis, idle time, such as at start-up, leaves the steps no room
  layout: 'stacked',
  colorBy: 'category',
  whatif: '',
  following: false,
  range: { from: 0, to: 1 },
  rangeEvents: { from: 0, to: 1 },
  band: null,
  cursor: null,
  otherCursor: null,
  base: null,
  selection: { kind: 'none' },
  rangeA: null,
  filter: NO_FILTER,
  of: 'live',
  flame: { inverted: false, folded: true, icicle: true, focus: 0, search: '', compare: false, byCategory: false },
  table: { by: 'stack', sort: 'bytes', descending: true },
  list: { open: true, kinds: ALL_EVENT_KINDS },
  breakdown: { open: false, of: 'follow', levels: ['category', 'module', 'function', 'line', 'stack', 'thread', 'stream'], folded: true, sort: 'bytes', side: 'difference', descending: true },
  lanes: { align: null, order: [], pinned: [], toggled: [] },
  lanesRange: null,
  lanesCursor: null,
  notes: [],
  theme: 'system',
};
