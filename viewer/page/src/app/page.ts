// The objects that live as long as the page: its state, and the code that synchronizes the state
// with the address, the server's progress and the reader's theme.

import { activity } from '../base/activity';
import { Coalesce } from '../base/coalesce';
import { news } from '../base/news';
import { type DataSource, messageOf } from '../data/data_source';
import { NO_ROW, type Progress } from '../data/protocol';
import { Commands } from '../state/commands';
import { carried, liveOf, placeOf, type Place } from '../state/live';
import { HistorySteps, stepOf } from '../state/history_steps';
import { axesOf, clampRange, domainOf, Navigator } from '../state/navigator';
import { fileOf, laneOf } from '../state/scope';
import { INITIAL_STATE, type State } from '../state/state';
import { Store } from '../state/store';
import { readUrl, writeUrl, type LinkedState, type Moment } from '../state/url_state';
import { showMoment } from '../views/answers/follow';
import { otherFile } from '../views/flame/other_moment';
import { hasNewGeneration, selectedRow, notifyNews, withGeneration } from './live_page';

const WRITE_URL_MS = 150;
const THEME_KEY = 'gpumemtrace.theme';

export class Page {
  readonly store = new Store();
  readonly commands = new Commands();
  readonly navigator: Navigator;
  failure = '';
  private linked: Partial<State> = {};
  private place: Place | null = null; // that belongs to `linked`
  private moment: Moment | null = null; // that the address names, and that is not shown yet
  private writing: { readonly timer: ReturnType<typeof setTimeout>; readonly end: () => void } | null = null;
  private written = location.hash; // the address that matches the state
  private readonly steps = new HistorySteps();
  private isStep = false; // whether the next write is a step of the browser's history
  private isFollowing = false; // an address
  private readonly opened = new Set<number>(); // files whose loading was requested
  private hasNewStage = false; // a shown file was loaded further since components last asked
  private readonly meta = new Coalesce(() => this.askMeta());

  constructor(readonly source: DataSource) {
    this.navigator = new Navigator(this.store, source);
    this.readAddress();
    this.store.update({ ...this.linked, theme: readTheme() });
    this.store.subscribe((state, old, at) => this.follow(state, old, at));
    addEventListener('hashchange', () => this.followAddress());
    this.source.watchProgress(
      (progress) => {
        const before = this.store.get().progress;
        this.store.update({ progress, lostAt: null });
        this.hasNewStage ||= before !== null && this.stagesIn(progress) !== this.stagesIn(before);
        const changed = progress.files.some((file, i) => file.state !== before?.files[i]?.state);
        if (changed || hasNewGeneration(progress, before)) this.loadMeta();
      },
      () => this.store.update(({ lostAt }) => ({ lostAt: lostAt ?? Date.now() })),
    );
    this.loadMeta();
  }

  announce = (text: string): void => {
    const region = document.getElementById('announcements');
    if (region !== null) region.textContent = text;
  };

  loadMeta(): void {
    this.meta.want();
  }

  private async askMeta(): Promise<void> {
    try {
      const meta = await activity.track(this.source.meta());
      let asked: State, row: number;
      do {
        asked = this.store.get();
        row = await selectedRow(asked, meta, this.source);
      } while (this.store.get().selection !== asked.selection);
      this.failure = '';
      const before = this.store.get();
      this.source.useWindows?.(meta);
      this.store.update((old) => {
        const next = withGeneration(old, meta, row, this.place);
        const settledNext = settled(next, (old.meta !== null && hasLanes(old)) || next.following, this.linked);
        return { ...settledNext, ...this.firstView(old, next) };
      });
      notifyNews(before, this.store.get(), this.navigator);
      this.notifyStages();
      if (this.linked.rangeEvents !== undefined) this.navigator.keepEvents();
      if (!hasLanes(before)) this.findLinkedBlock();
      this.showLinkedMoment();
    } catch (error) {
      this.failure = messageOf(error);
      this.store.update({});
    }
  }

  // What was asked before all of a recording was loaded was refused, or answered without categories.
  private notifyStages(): void {
    if (!this.hasNewStage) return;
    this.hasNewStage = false;
    news.notify();
  }

  private stagesIn(progress: Progress): string {
    const state = this.store.get();
    const shown = [state.file, otherFile(state)?.file];
    return shown.map((file) => progress.files.find((each) => each.file === file)?.state ?? '').join(' ');
  }

  // If there are many recordings, all but the first ones are loaded when they are shown.
  private openShown({ progress, file, other }: State): void {
    for (const shown of other === null ? [file] : [file, other]) {
      const isWaiting = progress?.files.find((each) => each.file === shown)?.state === 'waiting';
      if (!isWaiting || this.opened.has(shown)) continue;
      this.opened.add(shown);
      void activity.track(this.source.load?.(shown) ?? Promise.resolve()).catch(() => this.opened.delete(shown));
    }
  }

  private follow(state: State, old: State, at: number): void {
    this.openShown(state);
    if (state.theme !== old.theme) applyTheme(state.theme);
    if (state.meta === null) return;
    const step = this.isFollowing ? null : stepOf(state, old);
    if (step !== null && this.steps.begins(step, at)) {
      if (this.writing !== null && !this.writeAddress(old)) return; // of the step before
      this.isStep = true;
    }
    if (step !== null && state.file !== old.file) this.forgetAddress(state);
    if (!hasLanes(state) && step === null) return; // the file is being loaded
    if (state.view !== old.view && old.meta !== null) this.writeAddress(state);
    else if (this.writing === null && addressOf(state) === this.written) this.isStep = false;
    else this.writing ??= { timer: setTimeout(() => this.writeAddress(this.store.get()), WRITE_URL_MS), end: activity.begin() };
  }

  // Steps (history_steps.ts) are added to the browser's history; every other change replaces the
  // current entry. An address that was entered since the last write is followed, not replaced: its
  // event may come after a timer that was due before it. Returns false in that case.
  private writeAddress(state: State): boolean {
    if (this.writing !== null) {
      clearTimeout(this.writing.timer);
      this.writing.end();
      this.writing = null;
    }
    if (!this.hasFollowedAddress()) {
      this.followAddress();
      return false;
    }
    const address = addressOf(state);
    const isStep = this.isStep;
    this.isStep = false;
    if (address === this.written) return true;
    try {
      if (isStep) history.pushState(null, '', address);
      else history.replaceState(null, '', address);
    } catch {
      // A page inside of another one (an iframe with srcdoc, as in notebooks) has no address of its own.
    }
    this.written = location.hash; // unchanged if the browser has refused it because there were too many
    return true;
  }

  /** Whether the state is that of the address. The browser reports a new address some time after it has changed. */
  hasFollowedAddress(): boolean {
    return location.hash === this.written;
  }

  private followAddress(): void {
    if (this.hasFollowedAddress()) return;
    this.written = location.hash;
    this.readAddress();
    this.navigator.dropMove();
    this.isFollowing = true;
    this.store.update((old) => {
      const named = { ...old, ...resetOf(old), ...this.linked };
      const next = this.place === null ? { ...named, following: old.following } : { ...named, ...carried(named, this.place) };
      // An address does not name the range that is shown while the page follows.
      const isFollowing = next.following && this.linked.range === undefined && next.axis === old.axis && next.file === old.file;
      const { range, rangeEvents } = old;
      return settled({ ...next, ...(isFollowing ? { range, rangeEvents } : {}), following: isFollowing }, isFollowing, this.linked);
    });
    this.isFollowing = false;
    this.isStep = false;
    if (this.linked.rangeEvents !== undefined) this.navigator.keepEvents();
    this.findLinkedBlock();
    this.showLinkedMoment();
  }

  private readAddress(): void {
    const { place, moment, ...linked } = readUrl(location.hash);
    this.linked = linked;
    this.place = place ?? null;
    this.moment = moment ?? null;
  }

  // What an address named belongs to its file, not to another one that is opened by hand, as is its
  // view.
  private forgetAddress({ view }: State): void {
    this.linked = { view };
    this.place = this.moment = null;
  }

  // The page of a running process opens with the timeline, unless its address names a view.
  private firstView(old: State, next: State): Partial<State> {
    const isFirst = !hasLanes(old) && hasLanes(next) && this.linked.view === undefined;
    return isFirst && fileOf(next)?.live !== undefined ? { view: 'timeline' } : {};
  }

  private showLinkedMoment(): void {
    if (this.moment === null || !hasLanes(this.store.get())) return;
    const { moment } = this;
    this.moment = null;
    void activity.track(showMoment(moment, this)).catch(() => undefined); // a link works without it
  }

  // Finds a block that the address names by its row in a window that is no longer shown.
  private findLinkedBlock(): void {
    const { linked, place, source } = this;
    const { file } = this.store.get();
    const now = liveOf(this.store.get());
    if (linked.selection?.kind !== 'block' || place === null || now === null || place.window === now.window) return;
    const find = async (row: number): Promise<void> => {
      const found = (await source.moved?.(file, place.window, now.window, row)) ?? NO_ROW;
      const isAsked = this.linked === linked && liveOf(this.store.get())?.window === now.window;
      if (isAsked && found !== NO_ROW) this.store.update({ selection: { kind: 'block', row: found } });
    };
    void activity.track(find(linked.selection.row)).catch(() => undefined); // a link works without it
  }
}

// A link to the whole recording is the same at any length.
function addressOf(state: State): string {
  const linked: LinkedState = { ...state, place: placeOf(state), moment: null };
  return writeUrl(isWhole(state) || state.following ? { ...linked, ...WHOLE } : linked);
}
const WHOLE = { range: { from: 0, to: 1 }, rangeEvents: { from: 0, to: 1 } };

function isWhole(state: State): boolean {
  const file = fileOf(state);
  const domain = file === null ? null : domainOf(file, state.axis);
  return domain !== null && state.range.from === domain.from && state.range.to === domain.to;
}

function hasLanes(state: State): boolean {
  return laneOf(state) !== null;
}

function resetOf(old: State): Partial<State> {
  const first = new Store().get();
  return { ...first, meta: old.meta, progress: old.progress, lostAt: old.lostAt, theme: old.theme };
}

/** Returns a state that fits its recordings. `keep`: its window was settled before. */
function settled(state: State, keep: boolean, linked: Partial<State>): State {
  const file = fileOf(state) ?? state.meta?.files[0] ?? null;
  if (file === null) return state;
  const lane = file.lanes.find((each) => each.lane === state.lane) ?? file.lanes[0];
  if (lane === undefined) return { ...state, file: file.file };
  const axis = axesOf(file).includes(state.axis) ? state.axis : INITIAL_STATE.axis;
  const domain = domainOf(file, axis);
  const isLinked = linked.range !== undefined && axis === state.axis;
  const range = keep || isLinked ? clampRange(state.range, domain, axis) : domain;
  const rangeEvents = keep || linked.rangeEvents !== undefined ? state.rangeEvents : { from: 0, to: file.events };
  const first = linked.lane === undefined && !keep ? file.lanes[0]! : lane;
  const following = state.following && file.live !== undefined;
  return { ...state, file: file.file, lane: first.lane, axis, range, rangeEvents, following };
}

function readTheme(): State['theme'] {
  try {
    const theme = localStorage.getItem(THEME_KEY);
    return theme === 'light' || theme === 'dark' ? theme : 'system';
  } catch {
    return 'system'; // the page has no storage, as some browsers treat files
  }
}

export function applyTheme(theme: State['theme']): void {
  document.documentElement.dataset['theme'] = theme;
  try {
    localStorage.setItem(THEME_KEY, theme);
  } catch {
    // The theme then holds until the page is closed.
  }
}
