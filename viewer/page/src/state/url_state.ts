// Reads and writes the state in the address: '#v=1&view=timeline&from=0&to=5e9&sel=block-7'. Values
// equal to INITIAL_STATE are left out. Unknown keys and values are ignored, so that links of a
// newer page open too. A change of meaning needs a new version and a function that converts old
// addresses.

import { ALL_EVENT_KINDS, type Axis, type EventRange, type Filter, type Layout, type RangeBox, type RangeQuery, type Scope } from '../data/protocol';
import type { Place } from './live';
import { readNotes, writeNotes } from './notes';
import { INITIAL_STATE, NO_FILTER, type BreakdownOptions, type FlameOptions, type LanesOptions, type Selection, type State, type TableOptions } from './state';

export const URL_VERSION = 1;

/**
 * A moment that an address names by its time, because only the data know its event. The page turns
 * it into cursor and range.
 */
export interface Moment {
  readonly t_ns: number;
  readonly steps: number; // that the timeline shows up to it; 0: the range that it shows already
}

/** `place` is the window whose numbers the address uses, for a live recording. */
export type LinkedState = Omit<State, 'meta' | 'progress' | 'lostAt' | 'theme'> & { readonly place: Place | null; readonly moment: Moment | null };

const INITIAL_LINKED: LinkedState = { ...INITIAL_STATE, place: null, moment: null };

/** The view of an address that names other things but no view, as those of older pages do. */
const VIEW_OF_OLD_ADDRESSES = 'timeline';

export function writeUrl(state: LinkedState): string {
  const out = new Map<string, string>([['v', String(URL_VERSION)]]);
  for (const [key, field] of Object.entries(FIELDS)) {
    const text = field.write(state);
    if (key === 'view' || text !== field.write(INITIAL_LINKED)) out.set(key, text);
  }
  if (out.size === 2 && state.view === INITIAL_STATE.view) out.delete('view');
  return `#${[...out].map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&')}`;
}

/** Returns the parts of the state that an address names. */
export function readUrl(fragment: string): Partial<LinkedState> {
  let linked = INITIAL_LINKED;
  const named = new Set<keyof LinkedState>();
  for (const pair of fragment.replace(/^#/, '').split('&')) {
    const equals = pair.indexOf('=');
    const field = equals < 0 ? undefined : FIELDS[pair.slice(0, equals)];
    if (field === undefined) continue;
    const change = field.read(decode(pair.slice(equals + 1)), linked);
    if (change === null) continue;
    linked = { ...linked, ...change };
    for (const key of Object.keys(change)) named.add(key as keyof LinkedState);
  }
  if (named.size > 0 && !named.has('view')) {
    linked = { ...linked, view: VIEW_OF_OLD_ADDRESSES };
    named.add('view');
  }
  return Object.fromEntries([...named].map((key) => [key, linked[key]]));
}

interface Field {
  readonly write: (state: LinkedState) => string;
  /** Returns null if `text` is not a value of this field. `linked` is what was read so far. */
  readonly read: (text: string, linked: LinkedState) => Partial<LinkedState> | null;
}

const FIELDS: Readonly<Record<string, Field>> = {
  view: oneOf('view', ['overview', 'timeline', 'flame', 'table', 'segments', 'leaks', 'oom', 'ledger', 'frag', 'compare', 'lanes', 'ranks']),
  file: { write: (state) => String(state.file), read: (text) => orNull(numberIn(text), (file) => ({ file })) },
  other: { write: (state) => optional(state.other), read: (text) => orNull(numberIn(text), (other) => ({ other })) },
  lane: { write: (state) => String(state.lane), read: (text) => orNull(numberIn(text), (lane) => ({ lane })) },
  axis: oneOf('axis', ['time', 'event', 'step']),
  layout: oneOf('layout', ['stacked', 'address']),
  color: oneOf('colorBy', ['category', 'role', 'dtype', 'stack', 'size', 'age', 'stream', 'thread']),
  whatif: { write: ({ whatif }) => whatif, read: (text) => ({ whatif: text }) },
  follow: {
    write: ({ following }) => flag(following),
    read: (text) => orNull(flagIn(text), (following) => ({ following })),
  },
  win: {
    write: ({ place }) => (place === null ? '' : `${place.window}_${place.dropped}`),
    read: (text) => orNull(numbersIn(text), ([window, dropped]) => ({ place: { window, dropped } })),
  },
  t: {
    write: ({ moment }) => (moment === null ? '' : `${moment.t_ns}_${moment.steps}`),
    read: (text) => orNull(numbersIn(text), ([t_ns, steps]) => ({ moment: { t_ns, steps } })),
  },
  range: {
    write: ({ range }) => pair(range.from, range.to),
    read: (text) => orNull(pairIn(text), ([from, to]) => ({ range: { from, to } })),
  },
  events: {
    write: ({ rangeEvents }) => pair(rangeEvents.from, rangeEvents.to),
    read: (text) => orNull(pairIn(text), ([from, to]) => ({ rangeEvents: { from, to } })),
  },
  band: {
    write: ({ band }) => (band === null ? '' : pair(band.low, band.high)),
    read: (text) => orNull(pairIn(text), ([low, high]) => ({ band: { low, high } })),
  },
  at: { write: (state) => optional(state.cursor), read: (text) => orNull(numberIn(text), (cursor) => ({ cursor })) },
  other_at: {
    write: (state) => optional(state.otherCursor),
    read: (text) => orNull(numberIn(text), (otherCursor) => ({ otherCursor })),
  },
  base: { write: (state) => optional(state.base), read: (text) => orNull(numberIn(text), (base) => ({ base })) },
  sel: { write: (state) => writeSelection(state.selection), read: (text) => orNull(readSelection(text), (selection) => ({ selection })) },
  range_a: {
    write: ({ rangeA }) => (rangeA === null ? '' : writeRange(rangeA)),
    read: (text) => orNull(readRange(text.split('-')), (rangeA) => ({ rangeA })),
  },
  of: oneOf('of', ['live', 'growth', 'born', 'kept'] satisfies Scope['of'][]),
  text: filterText('text'),
  category: filterText('category'),
  stream: filterText('stream'),
  thread: filterText('thread'),
  stack: filterNumber('stack'),
  forward: filterNumber('forward_stack'),
  key: filterNumber('key'),
  min: filterNumber('min_size'),
  max: filterNumber('max_size'),
  inverted: flameFlag('inverted'),
  folded: flameFlag('folded'),
  icicle: flameFlag('icicle'),
  differ: flameFlag('compare'),
  by_category: flameFlag('byCategory'),
  focus: { write: (state) => String(state.flame.focus), read: (text, old) => orNull(numberIn(text), (focus) => flame(old, { focus })) },
  search: { write: (state) => state.flame.search, read: (text, old) => flame(old, { search: text }) },
  by: tableOption('by', ['stack', 'function', 'file', 'category', 'size', 'stream', 'thread', 'block']),
  sort: tableOption('sort', ['bytes', 'blocks', 'peak', 'growth', 'rate', 'lifetime', 'name']),
  down: {
    write: (state) => flag(state.table.descending),
    read: (text, old) => orNull(flagIn(text), (descending) => ({ table: { ...old.table, descending } })),
  },
  list: {
    write: ({ list }) => flag(list.open),
    read: (text, old) => orNull(flagIn(text), (open) => ({ list: { ...old.list, open } })),
  },
  kinds: {
    write: ({ list }) => String(list.kinds),
    read: (text, old) => orNull(numberIn(text), (kinds) => ({ list: { ...old.list, kinds: kinds & ALL_EVENT_KINDS } })),
  },
  breakdown: breakdownFlag('open'),
  breakdown_of: breakdownOption('of', ['follow', 'range', 'cursor', 'compare', 'ranges']),
  breakdown_by: {
    write: ({ breakdown }) => breakdown.levels.join('.'),
    read: (text, old) => orNull(levelsIn(text), (levels) => ({ breakdown: { ...old.breakdown, levels } })),
  },
  breakdown_sort: breakdownOption('sort', ['bytes', 'inclusive', 'byte_seconds', 'mean_bytes', 'allocations', 'allocation_rate', 'growth', 'end_bytes', 'name']),
  breakdown_side: breakdownOption('side', ['name', 'this', 'other', 'difference']),
  breakdown_folded: breakdownFlag('folded'),
  breakdown_down: breakdownFlag('descending'),
  align: {
    write: ({ lanes: { align } }) => align ?? '',
    read: (text, old) => orNull(LANE_ALIGNMENTS.find((each) => each === text) ?? null, (align) => ({ lanes: { ...old.lanes, align } })),
  },
  lanes_order: laneNames('order'),
  lanes_pinned: laneNames('pinned'),
  lanes_toggled: laneNames('toggled'),
  lanes_at: {
    write: ({ lanesCursor: at }) => (at === null ? '' : `${at.event}_${at.position}`),
    read: (text) => orNull(numbersIn(text), ([event, position]) => ({ lanesCursor: { event, position } })),
  },
  notes: { write: ({ notes }) => writeNotes(notes), read: (text) => orNull(readNotes(text), (notes) => ({ notes })) },
  lanes_range: {
    write: ({ lanesRange }) => (lanesRange === null ? '' : pair(lanesRange.from, lanesRange.to)),
    read: (text) => orNull(pairIn(text), ([from, to]) => ({ lanesRange: { from, to } })),
  },
};

function oneOf<K extends 'view' | 'axis' | 'layout' | 'colorBy' | 'of'>(key: K, values: readonly LinkedState[K][]): Field {
  return {
    write: (state) => state[key],
    read: (text) => orNull(values.find((value) => value === text) ?? null, (value) => ({ [key]: value })),
  };
}

function filterText(key: 'text' | 'category' | 'stream' | 'thread'): Field {
  return { write: (state) => state.filter[key], read: (text, old) => filter(old, { [key]: text }) };
}

function filterNumber(key: 'stack' | 'forward_stack' | 'key' | 'min_size' | 'max_size'): Field {
  return {
    write: (state) => optional(state.filter[key]),
    read: (text, old) => orNull(numberIn(text), (value) => filter(old, { [key]: value })),
  };
}

function filter(old: LinkedState, change: Partial<Filter>): Partial<LinkedState> {
  return { filter: { ...NO_FILTER, ...old.filter, ...change } };
}

function flameFlag(key: 'inverted' | 'folded' | 'icicle' | 'compare' | 'byCategory'): Field {
  return {
    write: (state) => flag(state.flame[key]),
    read: (text, old) => orNull(flagIn(text), (value) => flame(old, { [key]: value })),
  };
}

function flame(old: LinkedState, change: Partial<FlameOptions>): Partial<LinkedState> {
  return { flame: { ...old.flame, ...change } };
}

function tableOption<K extends 'by' | 'sort'>(key: K, values: readonly TableOptions[K][]): Field {
  return {
    write: (state) => state.table[key],
    read: (text, old) =>
      orNull(values.find((value) => value === text) ?? null, (value) => ({ table: { ...old.table, [key]: value } })),
  };
}

function breakdownFlag(key: 'open' | 'folded' | 'descending'): Field {
  return {
    write: (state) => flag(state.breakdown[key]),
    read: (text, old) => orNull(flagIn(text), (value) => ({ breakdown: { ...old.breakdown, [key]: value } })),
  };
}

function breakdownOption<K extends 'of' | 'sort' | 'side'>(key: K, values: readonly BreakdownOptions[K][]): Field {
  return {
    write: (state) => state.breakdown[key],
    read: (text, old) =>
      orNull(values.find((value) => value === text) ?? null, (value) => ({ breakdown: { ...old.breakdown, [key]: value } })),
  };
}

const LEVELS: readonly RangeQuery['by'][] = ['category', 'role', 'dtype', 'module', 'function', 'line', 'stack', 'thread', 'stream'];

function levelsIn(text: string): readonly RangeQuery['by'][] | null {
  const levels = [...new Set(text.split('.'))].flatMap((name) => LEVELS.find((level) => level === name) ?? []);
  return levels.length === 0 ? null : levels;
}

const LANE_ALIGNMENTS = ['clock', 'start', 'step'] as const;

function laneNames(key: Exclude<keyof LanesOptions, 'align'>): Field {
  return {
    write: (state) => state.lanes[key].join('_'),
    read: (text, old) => ({ lanes: { ...old.lanes, [key]: text.split('_').filter((name) => /^\d+(\.\d+)?$/.test(name)) } }),
  };
}

function writeSelection(selection: Selection): string {
  switch (selection.kind) {
    case 'none':
      return '';
    case 'block':
      return `block-${selection.row}`;
    case 'stack':
      return `stack-${selection.stack}`;
    case 'instant':
      return `event-${selection.event}`;
    case 'range':
      return `range-${writeRange(selection)}`;
  }
}

/** '3-17', '3-17-stacked-event-0-1024'. */
function writeRange({ from, to, box }: EventRange): string {
  return [from, to, ...(box === null ? [] : [box.layout, box.axis, box.low, box.high])].join('-');
}

function readRange([first = '', last = '', ...box]: readonly string[]): EventRange | null {
  const [from, to] = [numberIn(first), numberIn(last)];
  return from === null || to === null ? null : { from, to, box: boxIn(box) };
}

function readSelection(text: string): Selection | null {
  const [kind, ...rest] = text.split('-');
  const number = numberIn(rest[0] ?? '');
  if (number === null) return null;
  if (kind === 'block') return { kind, row: number };
  if (kind === 'stack') return { kind, stack: number };
  if (kind === 'event') return { kind: 'instant', event: number };
  return kind === 'range' ? orNull(readRange(rest), (range) => ({ kind, ...range })) : null;
}

function boxIn([layout = '', axis = '', lowest = '', highest = '']: readonly string[]): RangeBox | null {
  const [low, high] = [numberIn(lowest), numberIn(highest)];
  const isKnown = (['stacked', 'address'] satisfies Layout[] as string[]).includes(layout) && (['time', 'event', 'step'] satisfies Axis[] as string[]).includes(axis);
  return isKnown && low !== null && high !== null && low < high ? { layout: layout as Layout, axis: axis as Axis, low, high } : null;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function orNull<T, R>(value: T | null, make: (value: T) => R): R | null {
  return value === null ? null : make(value);
}

function optional(value: number | null): string {
  return value === null ? '' : String(value);
}

function numberIn(text: string): number | null {
  const value = Number(text);
  return text.trim() === '' || !Number.isFinite(value) || value < 0 ? null : value;
}

function pair(a: number, b: number): string {
  return `${a}_${b}`;
}

/** Parses '3_17'; either number may be the larger. */
function numbersIn(text: string): readonly [number, number] | null {
  const parts = text.split('_').map(numberIn);
  const [a, b] = parts;
  return parts.length !== 2 || a === null || b === null || a === undefined || b === undefined ? null : [a, b];
}

function pairIn(text: string): readonly [number, number] | null {
  const numbers = numbersIn(text);
  return numbers !== null && numbers[0] < numbers[1] ? numbers : null;
}

function flag(value: boolean): string {
  return value ? '1' : '0';
}

function flagIn(text: string): boolean | null {
  return text === '1' ? true : text === '0' ? false : null;
}
