// Follows a link of an answer to the lane, moment, filter and view that show the number's blocks.

import { lowerBound } from '../../base/binary_search';
import type { FileMeta } from '../../data/protocol';
import { eventAt } from '../../data/event_at';
import type { DataSource } from '../../data/data_source';
import { placeOf as windowOf } from '../../state/live';
import { axesOf, domainOf, type Navigator, type Range } from '../../state/navigator';
import { fileOf } from '../../state/scope';
import { INITIAL_STATE, NO_FILTER, type State } from '../../state/state';
import type { Store } from '../../state/store';
import { writeUrl, type Moment } from '../../state/url_state';
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
    ...(link.colorBy === null ? {} : { colorBy: link.colorBy }),
    ...(link.whatif === '' ? {} : { whatif: link.whatif }),
  };
}

/** Returns the address that does the same as following `link` in the file `to`, in a new tab. */
export function hrefOf(link: Link, state: State, to: number = state.file): string {
  const file = state.meta?.files.find((each) => each.file === to);
  const { axis, colorBy } = state;
  const place = file === undefined ? { view: link.view } : placeOf(state, file, link);
  const moment = link.t_ns === null ? null : { t_ns: link.t_ns, steps: link.steps };
  return writeUrl({ ...INITIAL_STATE, axis, colorBy, file: to, ...place, place: windowOf(state), moment });
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
export async function follow(link: Link, follower: Follower, to?: number): Promise<void> {
  const { store, source, navigator } = follower;
  const state = store.get();
  const index = to ?? state.file;
  const file = state.meta?.files.find((each) => each.file === index);
  if (file === undefined) return;
  const place = placeOf(state, file, link);
  const lane = place.lane ?? state.lane;
  const move = navigator.beginMove();
  const cursor = link.t_ns === null ? (index === state.file ? state.cursor : null) : await eventAt(source, index, lane, link.t_ns);
  if (!navigator.isWanted(move)) return;
  const whole = index === state.file ? {} : wholeRange(file, state.axis);
  store.update({ ...place, ...whole, file: index, cursor, band: null });
  if (link.t_ns !== null && cursor !== null) await showEvent(cursor, link.steps, follower);
  else if (link.view === 'timeline') navigator.fit();
}

/** Shows a moment that an address names. */
export async function showMoment({ t_ns, steps }: Moment, follower: Follower): Promise<void> {
  const { store, source, navigator } = follower;
  const { file, lane } = store.get();
  const move = navigator.beginMove();
  const event = await eventAt(source, file, lane, t_ns);
  if (navigator.isWanted(move)) await showEvent(event, steps, follower);
}

async function showEvent(event: number, steps: number, { store, navigator }: Follower): Promise<void> {
  const file = fileOf(store.get());
  if (file !== null && steps > 0) {
    const { from, to } = lastSteps(file, event, steps);
    if (!(await navigator.showEvents(from, to))) return;
  }
  await navigator.showEvent(event);
}

// If a recording has no steps, the last steps are this share of its events.
const SHARE_WITHOUT_STEPS = 1 / 20;

/** Returns the events of the last `steps` steps up to `event`. */
export function lastSteps(file: Pick<FileMeta, 'steps' | 'events'>, event: number, steps: number): Range {
  const { begin } = file.steps;
  const begun = lowerBound(begin, event);
  if (begun === 0) return { from: Math.max(0, event - Math.ceil(file.events * SHARE_WITHOUT_STEPS)), to: event };
  return { from: begin[Math.max(0, begun - steps)]!, to: event };
}

function wholeRange(file: FileMeta, shown: State['axis']): Partial<State> {
  const axis = axesOf(file).includes(shown) ? shown : 'time';
  return { axis, range: domainOf(file, axis), rangeEvents: { from: 0, to: file.events }, band: null, base: null, otherCursor: null, rangeA: null };
}
