// A page over live recordings: takes each generation in as it comes, one at a time, and keeps what
// the reader has chosen.

import { news } from '../base/news';
import { NO_ROW, type Meta, type Progress } from '../data/protocol';
import type { DataSource } from '../data/data_source';
import { carried, firstRange, liveOf, liveProgressOf, moved, type Place } from '../state/live';
import { domainOf, type Navigator } from '../state/navigator';
import { fileOf, laneOf } from '../state/scope';
import type { Command } from '../state/commands';
import type { State } from '../state/state';
import type { Store } from '../state/store';

/** Returns whether a file has a generation that Meta does not have yet. */
export function hasNewGeneration(progress: Progress, before: Progress | null): boolean {
  return progress.files.some((file, i) => file.live?.generation !== before?.files[i]?.live?.generation);
}

/** Returns the row that the selected block has in the generation of `next`. */
export async function selectedRow(state: State, next: Meta, source: DataSource): Promise<number> {
  const { selection } = state;
  if (selection.kind !== 'block') return NO_ROW;
  const from = liveOf(state)?.window;
  const to = next.files[state.file]?.live?.window;
  if (from === undefined || to === undefined || from === to || source.moved === undefined) return selection.row;
  return source.moved(state.file, from, to, selection.row);
}

/**
 * Returns the state with the data of `next`. `row` is the new row of the selected block; `place`
 * belongs to the address that the page began with.
 */
export function withGeneration(state: State, next: Meta, row: number, place: Place | null): State {
  const file = next.files[state.file];
  if (file?.live === undefined) return { ...state, meta: next };
  if (liveOf(state) === null || laneOf(state) === null) return begun({ ...state, meta: next }, place);
  return { ...state, meta: next, ...moved(state, next, row) };
}

// The state at the first look: the newest data by time, unless the address asks for something else.
function begun(state: State, place: Place | null): State {
  const file = fileOf(state);
  if (file === null || file.lanes.length === 0) return state;
  const linked: State = place === null ? { ...state, axis: 'time', following: true } : { ...state, ...carried(state, place) };
  if (!linked.following) return linked;
  const { axis } = linked;
  return { ...linked, range: firstRange(domainOf(file, axis), axis === 'time'), rangeEvents: { from: 0, to: file.events } };
}

/** Notifies components that their answers may have changed. */
export function notifyNews(old: State, next: State, navigator: Navigator): void {
  const [before, now] = [liveOf(old), liveOf(next)];
  if (before === null || now === null || before.generation === now.generation) return;
  if (before.window !== now.window) navigator.forget();
  news.notify();
}

export function isLive(state: State): boolean {
  return liveProgressOf(state) !== null;
}

export function liveCommands(store: Store, navigator: Navigator, announce: (text: string) => void): Command[] {
  return [
    {
      id: 'live.follow', title: 'Follow the newest events, or stop', group: 'Window', hotkeys: ['E'],
      enabled: () => isLive(store.get()) && laneOf(store.get()) !== null,
      run: () => {
        if (store.get().following) store.update({ following: false });
        else navigator.followNewest();
        announce(store.get().following ? 'Following' : 'Not following');
      },
    },
  ];
}
