// Derives what the aggregating views count from the state that all views share.

import { formatCount } from '../base/format_bytes';
import type { FileMeta, LaneMeta, Scope } from '../data/protocol';
import type { State } from './state';

export function fileOf(state: State): FileMeta | null {
  return state.meta?.files.find((file) => file.file === state.file) ?? null;
}

/** Returns 'run.gmt (rank 3)'. */
export function titleOfFile(file: FileMeta): string {
  return file.rank === null ? file.name : `${file.name} (rank ${file.rank})`;
}

export function laneOf(state: State): LaneMeta | null {
  return fileOf(state)?.lanes.find((lane) => lane.lane === state.lane) ?? null;
}

/**
 * Returns the event of the cursor. Without a cursor it is the newest event while following,
 * otherwise the lane's peak.
 */
export function cursorEvent(state: State): number {
  if (state.cursor === null && state.following) return fileOf(state)?.events ?? 0;
  return state.cursor ?? laneOf(state)?.peak_event ?? 0;
}

/** Returns null if no lane is known yet. */
export function scopeOf(state: State): Scope | null {
  if (laneOf(state) === null) return null;
  const cursor = cursorEvent(state);
  const base = state.base ?? 0;
  const window = { from: Math.floor(state.rangeEvents.from), to: Math.ceil(state.rangeEvents.to) };
  const moments: Readonly<Record<Scope['of'], { readonly from: number; readonly to: number }>> = {
    live: { from: 0, to: cursor },
    growth: { from: Math.min(base, cursor), to: Math.max(base, cursor) },
    born: window,
    kept: window,
  };
  return { file: state.file, lane: state.lane, filter: state.filter, of: state.of, ...moments[state.of] };
}

/** Describes what is counted: 'held at the peak'. */
export function scopeWords(state: State): string {
  const at = state.cursor === null ? (state.following ? 'now' : 'at the peak') : `after event ${formatCount(state.cursor)}`;
  switch (state.of) {
    case 'live':
      return `held ${at}`;
    case 'growth': {
      const from = state.base === null ? 'the beginning' : `event ${formatCount(state.base)}`;
      return `more held ${at} than at ${from}`;
    }
    case 'born':
      return 'allocated in the range that the timeline shows';
    case 'kept':
      return 'allocated in the range that the timeline shows, and still held at its end';
  }
}
