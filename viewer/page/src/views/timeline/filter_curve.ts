// What the filter lets through: as a curve over the picture, small blocks among it that are drawn as sums, and as a
// number at the cursor. The curve is asked for once for each picture; until the answer is there, that of the picture
// before it stands.

import { activity } from '../../base/activity';
import { formatBytes } from '../../base/format_bytes';
import type { DataSource } from '../../data/data_source';
import type { Filter, PassingCurve, PassingQuery } from '../../data/protocol';
import { isFiltering } from '../../state/filter';
import { isCoarse, momentKey, stageOf, windowOf } from '../../state/live';
import { cursorEvent, laneOf } from '../../state/scope';
import type { State } from '../../state/state';
import { keyOf } from '../../widgets/use_question';
import type { Picture } from './tiles';

type Shown = Pick<Picture, 'subject' | 'curve'>;

export class FilterCurve {
  private asked: { readonly picture: Shown; readonly filter: Filter } | null = null;
  private known: { readonly filter: Filter; readonly axis: string; readonly curve: PassingCurve } | null = null;
  private abort = new AbortController();

  constructor(
    private readonly source: DataSource,
    private readonly onChange: () => void,
  ) {}

  /** null: there is no filter, or nothing is known of it on that axis yet. The same object as long as the answer is. */
  look(picture: Shown, filter: Filter): PassingCurve | null {
    if (!isFiltering(filter) || isCoarse(picture.subject.stage)) {
      this.stop();
      return null;
    }
    if (this.known?.filter !== filter || this.known.axis !== axisOf(picture)) this.known = null;
    if (this.asked?.picture !== picture || this.asked.filter !== filter) {
      this.abort.abort();
      this.abort = new AbortController();
      this.asked = { picture, filter };
      void activity.track(this.ask(picture, filter, this.abort.signal));
    }
    return this.known?.curve ?? null;
  }

  stop(): void {
    this.abort.abort();
    this.asked = null;
    this.known = null;
  }

  private async ask(picture: Shown, filter: Filter, signal: AbortSignal): Promise<void> {
    try {
      const { file, lane, axis, from, to, columns } = picture.curve.window;
      const curve = await this.source.passing({ file, lane, axis, from, to, columns, filter }, signal);
      if (signal.aborted) return;
      this.known = { filter, axis: axisOf(picture), curve };
    } catch {
      return; // the legend says why
    }
    this.onChange();
  }
}

function axisOf({ subject }: Shown): string {
  return `${subject.file}/${subject.lane}/${subject.axis}/${subject.window}`;
}

/** Bytes at the middle of the column that a position lies in; null: not known there. */
export function bytesAt({ query, live }: PassingCurve, position: number): number | null {
  const column = Math.floor(((position - query.from) / (query.to - query.from)) * query.columns);
  const bytes = live[column];
  return bytes === undefined || Number.isNaN(bytes) ? null : bytes;
}

/** What the number at the cursor is asked with: a column of one event. null: there is no filter, or it is too early. */
export function cursorQuery(state: State): PassingQuery | null {
  if (!isFiltering(state.filter) || laneOf(state) === null || isCoarse(stageOf(state))) return null;
  const event = cursorEvent(state);
  return { file: state.file, lane: state.lane, filter: state.filter, axis: 'event', from: event, to: event + 1, columns: 1 };
}

export function cursorKey(state: State): string | null {
  const query = cursorQuery(state);
  if (query === null) return null;
  return keyOf(query.file, query.lane, query.filter, momentKey(state, query.from), windowOf(state), stageOf(state).split(' ')[0]);
}

export interface AtCursor {
  readonly filter: Filter; // that was asked with: an answer's own query may be a copy, from a worker
  readonly bytes: number; // NaN: not known
}

export async function askAtCursor(source: Pick<DataSource, 'passing'>, query: PassingQuery, signal: AbortSignal): Promise<AtCursor> {
  return { filter: query.filter, bytes: (await source.passing(query, signal)).live[0]! };
}

/** '1.20 GiB at the cursor'; '' : not known yet. `answer`: of this filter or of the one before. */
export function filterWords(state: State, answer: AtCursor | null): string {
  if (answer === null || answer.filter !== state.filter || Number.isNaN(answer.bytes)) return '';
  const at = state.cursor !== null ? 'at the cursor' : state.following ? 'now' : 'at the peak';
  return `${formatBytes(answer.bytes)} ${at}`;
}
