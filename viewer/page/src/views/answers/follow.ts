// Follows a link of an answer to the lane, moment, filter and view that show the number's blocks.

import type { FileMeta } from '../../data/protocol';
import { eventAt } from '../../data/event_at';
import type { DataSource } from '../../data/data_source';
import { axesOf, domainOf, type Navigator } from '../../state/navigator';
import { NO_FILTER, type State } from '../../state/state';
import type { Store } from '../../state/store';
import type { Link } from './page';

/** Returns the lane of the link's memory, or the lane that is shown if the file has none. */
export function laneFor(file: Pick<FileMeta, 'lanes'>, link: Link, shown: number): number {
  if (link.device === null) return shown;
  const ofDevice = file.lanes.filter((lane) => lane.device === link.device);
  const like = link.heap === '' ? undefined : ofDevice.find((lane) => lane.heap === link.heap);
  return (like ?? ofDevice[0])?.lane ?? shown;
}

/** Returns the changed state, without the moment. */
export function placeOf(state: State, file: Pick<FileMeta, 'lanes'>, link: Link): Partial<State> {
  return {
    view: link.view,
    lane: laneFor(file, link, state.lane),
    filter: { ...NO_FILTER, text: link.text, stack: link.stack, category: link.category },
    selection: link.stack === null ? { kind: 'none' } : { kind: 'stack', stack: link.stack },
    of: 'live',
  };
}

export interface Follower {
  readonly store: Store;
  readonly source: DataSource;
  readonly navigator: Navigator;
}

/**
 * Follows `link` in the file `to`, by default the file shown. Timelines show the link's moment, or
 * the whole recording if it has none.
 */
export async function follow(link: Link, { store, source, navigator }: Follower, to?: number): Promise<void> {
  const state = store.get();
  const index = to ?? state.file;
  const file = state.meta?.files.find((each) => each.file === index);
  if (file === undefined) return;
  const place = placeOf(state, file, link);
  const lane = place.lane ?? state.lane;
  const cursor = link.t_ns === null ? (index === state.file ? state.cursor : null) : await eventAt(source, index, lane, link.t_ns);
  const whole = index === state.file ? {} : wholeRange(file, state.axis);
  store.update({ ...place, ...whole, file: index, cursor, band: null });
  if (link.t_ns !== null && cursor !== null) await navigator.showEvent(cursor);
  else if (link.view === 'timeline') navigator.fit();
}

function wholeRange(file: FileMeta, shown: State['axis']): Partial<State> {
  const axis = axesOf(file).includes(shown) ? shown : 'time';
  return { axis, range: domainOf(file, axis), rangeEvents: { from: 0, to: file.events }, band: null, base: null, otherCursor: null };
}
