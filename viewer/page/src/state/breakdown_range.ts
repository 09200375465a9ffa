// Which range of events the breakdown is of.

import { formatCount } from '../base/format_bytes';
import { cursorEvent, fileOf } from './scope';
import type { State } from './state';

export interface EventRange {
  readonly from: number;
  readonly to: number; // equal to `from`: a moment
}

/** Returns the selected range, or what the timeline shows, or the cursor's moment. */
export function breakdownRange(state: State): EventRange {
  const events = fileOf(state)?.events ?? 0;
  const { selection, rangeEvents, breakdown } = state;
  if (breakdown.of === 'cursor') {
    const at = Math.min(events, cursorEvent(state));
    return { from: at, to: at };
  }
  const { from, to } = selection.kind === 'range' ? selection : rangeEvents;
  const begin = Math.min(events, Math.max(0, Math.floor(from)));
  return { from: begin, to: Math.min(events, Math.max(begin, Math.ceil(to))) };
}

/** 'Selected: events 3 to 17'. */
export function breakdownWords(state: State, { from, to }: EventRange): string {
  const events = fileOf(state)?.events ?? 0;
  if (state.breakdown.of === 'cursor') return `${state.cursor === null && !state.following ? 'At the peak, after' : 'After'} event ${formatCount(to)}`;
  if (state.selection.kind === 'range') return `Selected: events ${formatCount(from)} to ${formatCount(to)}`;
  if (from === 0 && to === events) return 'The whole recording';
  return `Shown: events ${formatCount(from)} to ${formatCount(to)}`;
}
