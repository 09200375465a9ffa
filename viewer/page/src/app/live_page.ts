// A page over recordings that go on: takes each generation in as it comes, one at a time, and keeps what
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

/** Whether a file has a generation that Meta does not have yet. */
export function hasNewGeneration(progress: Progress, before: Progress | null): boolean {
  return progress.files.some((file, i) => file.live?.generation !== before?.files[i]?.live?.generation);
}

/** The row that the selected block has in the generation that `next` tells of. */
export async function selectedRow(state: State, next: Meta, source: DataSource): Promise<number> {
  const { selection } = state;
  if (selection.kind !== 'block') return NO_ROW;
  const from = liveOf(state)?.window;
  const to = next.files[state.file]?.live?.window;
  if (from === undefined || to === undefined || from === to || source.moved === undefined) return selection.row;
  return source.moved(state.file, from, to, selection.row);
}

/** The state with what `next` tells; `row`: of the selected block; `place`: of the address that it began with. */
export function withGeneration(state: State, next: Meta, row: number, place: Place | null): State {
  const file = next.files[state.file];
  if (file?.live === undefined) return { ...state, meta: next };
  if (liveOf(state) === null || laneOf(state) === null) return begun({ ...state, meta: next }, place);
  return { ...state, meta: next, ...moved(state, next, row) };
}

// One looks at it for the first time: what happens now, by time, unless the address says otherwise.
function begun(state: State, place: Place | null): State {
  const file = fileOf(state);
  if (file === null || file.lanes.length === 0) return state;
  const linked: State = place === null ? { ...state, axis: 'time', following: true } : { ...state, ...carried(state, place) };
  if (!linked.following) return linked;
  const { axis } = linked;
  return { ...linked, range: firstRange(domainOf(file, axis), axis === 'time'), rangeEvents: { from: 0, to: file.events } };
}

/** Tells who shows something that it may have another answer now. */
export function tellNews(old: State, next: State, navigator: Navigator): void {
  const [before, now] = [liveOf(old), liveOf(next)];
  if (before === null || now === null || before.generation === now.generation) return;
  if (before.window !== now.window) navigator.forget();
  news.tell();
}

export function isLive(state: State): boolean {
  return liveProgressOf(state) !== null;
}

export function liveCommands(store: Store, navigator: Navigator, announce: (text: string) => void): Command[] {
  return [
    {
      id: 'live.follow', title: 'Follow what happens now, or stop', group: 'Window', hotkeys: ['E'],
      enabled: () => isLive(store.get()) && laneOf(store.get()) !== null,
      run: () => {
        if (store.get().following) store.update({ following: false });
        else navigator.followNewest();
        announce(store.get().following ? 'Following' : 'Standing still');
      },
    },
  ];
}
