// What the breakdown is of: which events, which part of the picture, and why.

import { formatBytes, formatCount } from '../base/format_bytes';
import type { EventRange, RangeBox } from '../data/protocol';
import { cursorEvent, fileOf } from './scope';
import type { State } from './state';

/** What the pointer is over. */
export interface Pointed {
  readonly moment: number | null; // event
  readonly brush: EventRange | null; // that is being dragged out
}

export const NOTHING_POINTED: Pointed = { moment: null, brush: null };

export interface Subject extends EventRange {
  readonly kind: 'brush' | 'selection' | 'pointer' | 'cursor' | 'shown' | 'compare';
  readonly rangeA: EventRange | null; // with which it is compared
}

/** A selection is pinned: the pointer does not change what the breakdown is of. */
export function breakdownSubject(state: State, pointed: Pointed): Subject {
  const { of } = state.breakdown;
  const subject = alone(state, pointed);
  return of === 'ranges' && state.rangeA !== null ? { ...subject, rangeA: clamped(state, state.rangeA) } : subject;
}

function alone(state: State, pointed: Pointed): Subject {
  const { of } = state.breakdown;
  if (of === 'compare') return compared(state, pointed.moment);
  if (of === 'cursor') return momentAt(state, 'cursor', cursorEvent(state));
  if (pointed.brush !== null) return within(state, 'brush', pointed.brush);
  if (state.selection.kind === 'range') return within(state, 'selection', state.selection);
  if (of === 'follow' && pointed.moment !== null) return momentAt(state, 'pointer', pointed.moment);
  if (of === 'follow' && state.cursor !== null) return momentAt(state, 'cursor', state.cursor);
  return within(state, 'shown', { ...state.rangeEvents, box: shownBox(state) });
}

function compared(state: State, moment: number | null): Subject {
  const { selection } = state;
  if (selection.kind === 'range') return within(state, 'compare', selection);
  const events = [state.base ?? 0, moment ?? cursorEvent(state)].sort((a, b) => a - b);
  return within(state, 'compare', { from: events[0]!, to: events[1]!, box: null });
}

function momentAt(state: State, kind: Subject['kind'], event: number): Subject {
  return within(state, kind, { from: event, to: event, box: null });
}

/** Events that are beyond the recording, as in a link to a longer one, become its last one. */
function clamped(state: State, { from, to, box }: EventRange): EventRange {
  const events = fileOf(state)?.events ?? 0;
  const begin = Math.min(events, Math.max(0, Math.floor(from)));
  return { from: begin, to: Math.min(events, Math.max(begin, Math.ceil(to))), box };
}

function within(state: State, kind: Subject['kind'], range: EventRange): Subject {
  return { kind, ...clamped(state, range), rangeA: null };
}

/** The selected range, or what is shown, becomes A, and another range is to be selected. */
export function withRangeA(state: State): Partial<State> {
  const { breakdown: old } = state;
  const sort = old.of === 'ranges' ? {} : { sort: 'bytes', side: 'difference', descending: true } as const;
  return { rangeA: selectedOrShown(state), selection: { kind: 'none' }, breakdown: { ...old, open: true, of: 'ranges', ...sort } };
}

export function swappedRanges(state: State): Partial<State> {
  const { rangeA } = state;
  return rangeA === null ? {} : { rangeA: selectedOrShown(state), selection: { kind: 'range', ...rangeA } };
}

export function withoutRangeA({ breakdown: old }: State): Partial<State> {
  const breakdown = old.of === 'ranges' ? { ...old, of: 'follow', sort: 'bytes', descending: true } as const : old;
  return { rangeA: null, breakdown };
}

/** The selected range, otherwise what the timeline shows. */
function selectedOrShown(state: State): EventRange {
  const { selection } = state;
  const { from, to, box } = selection.kind === 'range' ? selection : { ...state.rangeEvents, box: shownBox(state) };
  return clamped(state, { from, to, box });
}

function shownBox({ band, axis, layout }: State): RangeBox | null {
  return band === null ? null : { axis, layout, low: band.low, high: band.high };
}

/** 'Selected: events 3 to 17, between 1.00 GiB and 1.50 GiB'; 'B, selected: events 3 to 17'. */
export function subjectWords(state: State, subject: Subject): string {
  if (subject.rangeA === null) return wordsAlone(state, subject);
  const words = wordsAlone(state, subject);
  return `B, ${words.charAt(0).toLowerCase()}${words.slice(1)}`;
}

/** 'events 3 to 17, between 1.00 GiB and 1.50 GiB'. */
export function rangeWords({ from, to, box }: EventRange): string {
  const events = from === to ? `event ${formatCount(to)}` : `events ${formatCount(from)} to ${formatCount(to)}`;
  return box === null ? events : `${events}, ${boxWords(box)}`;
}

function wordsAlone(state: State, subject: Subject): string {
  const { kind, from, to, box } = subject;
  const events = rangeWords({ from, to, box: null });
  const place = box === null ? '' : `, ${boxWords(box)}`;
  switch (kind) {
    case 'pointer':
      return `At the pointer, after ${events}`;
    case 'cursor':
      return `${state.cursor === null ? (state.following ? 'Now' : 'At the peak') : 'At the cursor'}, after ${events}`;
    case 'compare':
      return `Changed from event ${formatCount(from)} to event ${formatCount(to)}${place}`;
    case 'brush':
    case 'selection':
      return `Selected: ${events}${place}`;
    case 'shown':
      return from === 0 && to === fileOf(state)?.events && box === null ? 'The whole recording' : `Shown: ${events}${place}`;
  }
}

function boxWords({ layout, low, high }: RangeBox): string {
  const between = `between ${formatBytes(low)} and ${formatBytes(high)}`;
  return layout === 'stacked' ? between : `${between} of the addresses`;
}
