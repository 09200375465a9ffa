// The memory that matches the filter: a curve over the picture, which includes small blocks drawn
// as sums, and a number at the cursor.

import { formatBytes } from '../../base/format_bytes';
import type { DataSource } from '../../data/data_source';
import type { Filter, PassingCurve, PassingQuery } from '../../data/protocol';
import { isFiltering } from '../../state/filter';
import { isCoarse, momentKey, stageOf, windowOf } from '../../state/live';
import { cursorEvent, laneOf } from '../../state/scope';
import type { State } from '../../state/state';
import { keyOf } from '../../widgets/use_question';
import { PictureCurve, type Pictured } from './picture_curve';

export class FilterCurve {
  private readonly curve: PictureCurve<Filter, PassingCurve>;

  constructor(source: Pick<DataSource, 'passing'>, onChange: () => void) {
    this.curve = new PictureCurve((window, filter, signal) => source.passing({ ...window, filter }, signal), onChange);
  }

  /** Returns null if there is no filter, or the curve is not known yet. Why it failed is in the legend. */
  look(picture: Pictured, filter: Filter): PassingCurve | null {
    return this.curve.look(picture, isFiltering(filter) && !isCoarse(picture.subject.stage) ? filter : null);
  }

  stop(): void {
    this.curve.stop();
  }
}

/** Returns the bytes at the peak of the column that contains a position, or null if unknown. */
export function bytesAt({ query, live }: PassingCurve, position: number): number | null {
  const column = Math.floor(((position - query.from) / (query.to - query.from)) * query.columns);
  const bytes = live[column];
  return bytes === undefined || Number.isNaN(bytes) ? null : bytes;
}

/**
 * Returns the query for the number at the cursor: one column of one event. Returns null if there is
 * no filter or blocks are not known yet.
 */
export function cursorQuery(state: State): PassingQuery | null {
  if (!isFiltering(state.filter) || laneOf(state) === null || isCoarse(stageOf(state))) return null;
  const event = cursorEvent(state);
  return { file: state.file, lane: state.lane, filter: state.filter, axis: 'event', from: event, to: event + 1, columns: 1 };
}

export function cursorKey(state: State): string | null {
  const query = cursorQuery(state);
  if (query === null) return null;
  return keyOf(query.file, query.lane, query.filter, momentKey(state, query.from), windowOf(state));
}

export interface AtCursor {
  readonly filter: Filter; // that was asked with; the query in an answer may be a copy from a worker
  readonly bytes: number; // NaN: unknown
}

export async function askAtCursor(source: Pick<DataSource, 'passing'>, query: PassingQuery, signal: AbortSignal): Promise<AtCursor> {
  return { filter: query.filter, bytes: (await source.passing(query, signal)).live[0]! };
}

/**
 * Returns '1.20 GiB at the cursor', or '' if not known yet. `answer` may belong to the previous
 * filter.
 */
export function filterWords(state: State, answer: AtCursor | null): string {
  if (answer === null || answer.filter !== state.filter || Number.isNaN(answer.bytes)) return '';
  const at = state.cursor !== null ? 'at the cursor' : state.following ? 'now' : 'at the peak';
  return `${formatBytes(answer.bytes)} ${at}`;
}
