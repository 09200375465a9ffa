// What the breakdown is of: which events, which part of the picture, and why.

import { formatBytes, formatCount } from '../base/format_bytes';
import type { RangeBox } from '../data/protocol';
import { cursorEvent, fileOf } from './scope';
import type { State } from './state';

export interface EventRange {
  readonly from: number;
  readonly to: number; // equal to `from`: a moment
  readonly box: RangeBox | null; // only the blocks in it
}

/** What the pointer is over. */
export interface Pointed {
  readonly moment: number | null; // event
  readonly brush: EventRange | null; // that is being dragged out
}

export const NOTHING_POINTED: Pointed = { moment: null, brush: null };

export interface Subject extends EventRange {
  readonly kind: 'brush' | 'selection' | 'pointer' | 'cursor' | 'shown' | 'compare';
}

/** A selection is pinned: the pointer does not change what the breakdown is of. */
export function breakdownSubject(state: State, pointed: Pointed): Subject {
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
function within(state: State, kind: Subject['kind'], { from, to, box }: EventRange): Subject {
  const events = fileOf(state)?.events ?? 0;
  const begin = Math.min(events, Math.max(0, Math.floor(from)));
  return { kind, from: begin, to: Math.min(events, Math.max(begin, Math.ceil(to))), box };
}

function shownBox({ band, axis, layout }: State): RangeBox | null {
  return band === null ? null : { axis, layout, low: band.low, high: band.high };
}

/** 'Selected: events 3 to 17, between 1.00 GiB and 1.50 GiB'. */
export function subjectWords(state: State, subject: Subject): string {
  const { kind, from, to, box } = subject;
  const events = from === to ? `event ${formatCount(to)}` : `events ${formatCount(from)} to ${formatCount(to)}`;
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
