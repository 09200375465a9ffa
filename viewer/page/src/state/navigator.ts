// Where timelines look: the range on the axis, kept in step with the same range in events. Curves
// (CurveTile.event) translate positions on the axis to events and back, so that only C++ knows how
// events, times and steps correspond.

import { upperBound } from '../base/binary_search';
import { midpointOf } from '../data/columns';
import type { DataSource } from '../data/data_source';
import type { Axis, CurveTile, FileMeta } from '../data/protocol';
import { withoutStacks } from './filter';
import { INITIAL_STATE, type State } from './state';
import type { Store } from './store';

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Returns the whole extent of a file on an axis. */
export function domainOf(file: FileMeta, axis: Axis): Range {
  switch (axis) {
    case 'event':
      return { from: 0, to: file.events + 1 }; // what is live after the last event is as wide as the rest
    case 'time':
      return { from: file.live?.begin_ns ?? 0, to: Math.max((file.live?.begin_ns ?? 0) + 1, file.end_ns) };
    case 'step': {
      const steps = file.steps.end.length;
      const hasTail = steps > 0 && file.steps.end[steps - 1]! < file.events;
      return { from: 0, to: steps + (hasTail ? 2 : 1) };
    }
  }
}

/**
 * Returns the position of a moment whose event and time are known. Events between the begins of two
 * steps are spread evenly.
 */
export function positionOnAxis(file: FileMeta, axis: Axis, event: number, ns: number): number {
  if (axis === 'event') return event;
  if (axis === 'time') return ns;
  const { begin, end } = file.steps;
  const step = upperBound(begin, event); // steps begun
  const last = begin.length;
  if (step === last && last > 0 && event > end[last - 1]!) {
    return last + 1 + (event - end[last - 1]!) / Math.max(1, file.events - end[last - 1]!);
  }
  const from = step === 0 ? 0 : begin[step - 1]!;
  const to = step === last && last > 0 ? end[last - 1]! : (begin[step] ?? file.events);
  return step + (event - from) / Math.max(1, to - from);
}

/** Returns the axes that a file has. */
export function axesOf(file: FileMeta): readonly Axis[] {
  return file.steps.source === '' ? ['time', 'event'] : ['time', 'event', 'step'];
}

/** Returns the event at a position. REQUIRES: `tile` has the same axis. */
export function eventOf(tile: CurveTile, position: number): number {
  const { window, event } = tile;
  if (window.axis === 'event') return Math.floor(position);
  const at = ((position - window.from) / (window.to - window.from)) * window.columns - 0.5;
  const c = Math.min(Math.max(Math.floor(at), 0), window.columns - 1);
  const next = Math.min(c + 1, window.columns - 1);
  return Math.floor(event[c]! + (event[next]! - event[c]!) * Math.min(1, Math.max(0, at - c)));
}

/**
 * Returns the position of the moment after `event`: exact to a column if the tile contains it,
 * otherwise the nearer end of the tile.
 */
export function positionIn(tile: CurveTile, event: number): number {
  const { window } = tile;
  if (window.axis === 'event') return event;
  const c = upperBound(tile.event, event - 1); // the first column that contains it
  const width = (window.to - window.from) / window.columns;
  return c >= window.columns ? window.to : window.from + (c + (c === 0 ? 0 : 0.5)) * width;
}

const SMALLEST: Readonly<Record<Axis, number>> = { time: 20, event: 4, step: 1e-6 };

/** Returns a range inside the domain that is not smaller than the minimum of the axis. */
export function clampRange(range: Range, domain: Range, axis: Axis): Range {
  const isInside = range.from >= domain.from && range.to <= domain.to && range.to - range.from >= SMALLEST[axis];
  if (isInside) return range; // the same to the last bit, however often it is clamped
  const size = Math.min(domain.to - domain.from, Math.max(range.to - range.from, SMALLEST[axis]));
  const middle = (range.from + range.to) / 2;
  const from = Math.min(Math.max(middle - size / 2, domain.from), domain.to - size);
  return { from, to: from + size };
}

/**
 * Rounds the ends to a millionth of the range, far less than a pixel, so that addresses are short.
 * Whole numbers, such as the ends of a recording, stay what they are.
 */
export function roundedRange(range: Range): Range {
  const decimals = Math.max(0, Math.min(12, 6 - Math.floor(Math.log10(range.to - range.from))));
  const round = (position: number): number => Number(position.toFixed(decimals));
  return { from: round(range.from), to: round(range.to) };
}

const MARGIN = 0.02; // share of the time between the first and the last event
const IDLE = 0.05; // idle time is left out if it has a larger share of the whole time

/** Returns the time that is shown at first if all events are from `first` to `last`. */
export function fittedTime(first: number, last: number, domain: Range): Range {
  if (!(last > first)) return domain;
  const room = (last - first) * MARGIN;
  const idle = (domain.to - domain.from) * IDLE;
  return roundedRange({
    from: first - room > domain.from + idle ? first - room : domain.from,
    to: last + room < domain.to - idle ? last + room : domain.to,
  });
}

export function zoomed(range: Range, factor: number, at: number): Range {
  return { from: at - (at - range.from) * factor, to: at + (range.to - at) * factor };
}

/** A move for which positions or events have to be asked for, and what was shown when it began. */
export interface Move {
  readonly axis: Axis; // that is shown at its end
  readonly file: number;
  readonly lane: number;
  readonly shown: Axis;
}

export class Navigator {
  private tiles: readonly CurveTile[] = []; // finest first; all of the lane and axis shown
  // How finely `rangeEvents` was computed. Only a finer curve changes it.
  private settled: { readonly range: Range; readonly width: number } | null = null;
  private newest: Move | null = null;

  constructor(
    private readonly store: Store,
    private readonly source: DataSource,
  ) {}

  file(): FileMeta | null {
    const { meta, file } = this.store.get();
    return meta?.files[file] ?? null;
  }

  /**
   * Shows another file or lane. Resets everything that depends on it; keeps the axis if the file
   * has it. `more`: what else changes, in the same step of the browser's history.
   */
  showLane(file: number, lane: number, more: Partial<State> = {}): void {
    const old = this.store.get();
    if (file === old.file) {
      this.store.update({ lane, band: null, selection: { kind: 'none' }, rangeA: null, ...more });
      return;
    }
    const meta = old.meta?.files[file];
    if (meta === undefined) return;
    const axis = axesOf(meta).includes(old.axis) ? old.axis : INITIAL_STATE.axis;
    this.store.update({
      file, lane, axis, band: null, cursor: null, otherCursor: null, base: null, selection: { kind: 'none' }, rangeA: null,
      filter: withoutStacks(old.filter), range: domainOf(meta, axis), rangeEvents: { from: 0, to: meta.events }, ...more,
    });
  }

  domain(): Range {
    const file = this.file();
    return file === null ? { from: 0, to: 1 } : domainOf(file, this.store.get().axis);
  }

  isWhole(): boolean {
    const { range } = this.store.get();
    const domain = this.domain();
    return range.from === domain.from && range.to === domain.to;
  }

  /** Stores a curve for translation. Keeps at most the last two of different fineness. */
  learn(tile: CurveTile): void {
    const state = this.store.get();
    if (!belongsTo(tile, state)) return;
    const width = columnWidthOf;
    const overview = this.tiles.filter((each) => belongsTo(each, state)).sort((a, b) => width(b) - width(a))[0];
    this.tiles = [tile, ...(overview === undefined || overview === tile ? [] : [overview])].sort((a, b) => width(a) - width(b));
    const { range, rangeEvents } = state;
    const { settled } = this;
    if (settled !== null && sameRange(settled.range, range) && settled.width <= width(tile)) return;
    this.settled = { range, width: width(tile) };
    const events = this.eventsOf(range);
    if (events.from !== rangeEvents.from || events.to !== rangeEvents.to) this.store.update({ rangeEvents: events });
  }

  /** Marks `rangeEvents` as exact, because it comes from a link: no curve changes it. */
  keepEvents(): void {
    this.settled = { range: this.store.get().range, width: 0 };
  }

  eventAt(position: number): number {
    const events = this.file()?.events ?? 0;
    const { axis } = this.store.get();
    if (axis === 'event') return Math.min(events, Math.max(0, Math.floor(position)));
    const tile = this.tilesHere().find((each) => each.window.from <= position && position <= each.window.to) ?? this.tilesHere().at(-1);
    return tile === undefined ? 0 : Math.min(events, eventOf(tile, position));
  }

  /** Returns the position as precisely as the loaded curves allow, or null if none is loaded. */
  positionOf(event: number): number | null {
    if (this.store.get().axis === 'event') return event;
    const tile = this.tilesHere().find((each) => each.event[0]! < event && event <= each.event[each.event.length - 1]!) ?? this.tilesHere().at(-1);
    return tile === undefined ? null : positionIn(tile, event);
  }

  /** `at`: when the range was requested; see Store.update(). */
  setRange(range: Range, at?: number): void {
    this.dropMove();
    const domain = this.domain();
    const clamped = roundedRange(clampRange(range, domain, this.store.get().axis));
    const finest = this.tilesHere()[0];
    this.settled = { range: clamped, width: finest === undefined ? Infinity : columnWidthOf(finest) };
    this.store.update({ range: clamped, rangeEvents: this.eventsOf(clamped), following: false }, at);
  }

  fit(): void {
    const { following } = this.store.get();
    this.store.update({ band: null });
    this.setRange(this.domain());
    if (following) this.store.update({ following });
  }

  /** Keeps the end of the range at the newest event until the range is moved. */
  followNewest(): void {
    const { range } = this.store.get();
    const { to } = this.domain();
    this.setRange({ from: to - (range.to - range.from), to });
    this.store.update({ following: true, cursor: null });
  }

  /** Drops all curves, because events have new numbers. */
  forget(): void {
    this.tiles = [];
    this.settled = null;
    this.dropMove();
  }

  /** Zooms in if `factor` < 1. `at` is the position that stays in place. */
  zoom(factor: number, at?: number): void {
    const { range, cursor } = this.store.get();
    const held = cursor === null ? null : this.positionOf(cursor);
    const isSeen = held !== null && held >= range.from && held <= range.to;
    this.setRange(zoomed(range, factor, at ?? (isSeen ? held : (range.from + range.to) / 2)));
  }

  /** Moves the range by a share of its width. */
  pan(share: number): void {
    const { range } = this.store.get();
    const by = share * (range.to - range.from);
    this.setRange({ from: range.from + by, to: range.to + by });
  }

  /** Puts the cursor at `event`, and moves the range if it does not contain it. */
  async showEvent(event: number): Promise<void> {
    const at = Date.now();
    this.store.update({ cursor: event }, at);
    const asked = this.beginMove();
    const position = await this.locate(event, asked.axis);
    if (!this.isWanted(asked)) return;
    const { range } = this.store.get();
    if (position >= range.from && position <= range.to) return;
    const half = (range.to - range.from) / 2;
    this.setRange({ from: position - half, to: position + half }, at);
  }

  /** Shows a range of events with some margin. Returns whether that was still wanted. */
  async showEvents(from: number, to: number): Promise<boolean> {
    const at = Date.now();
    const asked = this.beginMove();
    const { axis } = asked;
    const [begin, end] = await Promise.all([this.locate(from, axis), this.locate(to, axis)]);
    if (!this.isWanted(asked)) return false;
    const room = Math.max((end - begin) * 0.1, SMALLEST[axis]);
    this.setRange({ from: begin - room, to: end + room }, at);
    return true;
  }

  /** The axis that is shown, or will be as soon as its positions are known. */
  get axis(): Axis {
    const { newest } = this;
    return newest !== null && this.isWanted(newest) ? newest.axis : this.store.get().axis;
  }

  async setAxis(axis: Axis): Promise<void> {
    const file = this.file();
    const state = this.store.get();
    if (file === null || this.axis === axis) return;
    const at = Date.now();
    const asked = this.beginMove(axis);
    const domain = domainOf(file, axis);
    const isAll = state.rangeEvents.from === 0 && state.rangeEvents.to === file.events;
    if (this.isWhole() || (state.axis === 'time' && isAll)) {
      const range = axis === 'time' ? await this.timeOfEvents(file) : domain;
      if (!this.isWanted(asked)) return;
      this.store.update({ axis, range, rangeEvents: { from: 0, to: file.events } }, at);
    } else {
      const [from, to] = await Promise.all([this.locate(state.rangeEvents.from, axis), this.locate(state.rangeEvents.to, axis)]);
      if (!this.isWanted(asked)) return;
      this.store.update({ axis, range: roundedRange(clampRange({ from, to }, domain, axis)) }, at);
    }
    this.keepEvents();
  }

  beginMove(axis = this.store.get().axis): Move {
    const { file, lane, axis: shown } = this.store.get();
    return (this.newest = { axis, file, lane, shown });
  }

  /**
   * Returns whether a move may still be made. By the time its positions are known, the reader may
   * have moved the range or opened another recording.
   */
  isWanted(move: Move): boolean {
    const { file, lane, axis } = this.store.get();
    return move === this.newest && file === move.file && lane === move.lane && axis === move.shown;
  }

  dropMove(): void {
    this.newest = null;
  }

  /**
   * Returns the time from the first event to the last one with some margin, or the whole time if
   * there is little before and after. A program may start and end slowly.
   */
  private async timeOfEvents(file: FileMeta): Promise<Range> {
    const domain = domainOf(file, 'time');
    if (file.live !== undefined || file.events === 0) return domain;
    const timeOf = async (event: number): Promise<number> => {
      const window = { file: file.file, lane: this.store.get().lane, axis: 'event' as const, from: event, to: event + 1, columns: 1 };
      return (await this.source.curve(window)).ns[0] ?? NaN;
    };
    return fittedTime(await timeOf(1), await timeOf(file.events), domain);
  }

  /**
   * Returns the position of the moment after `event` on any axis by narrowing it down with a few
   * small curves.
   */
  async locate(event: number, axis: Axis): Promise<number> {
    const file = this.file();
    if (axis === 'event' || file === null) return event;
    const { lane, file: index } = this.store.get();
    let { from, to } = domainOf(file, axis);
    // It lies between the midpoints of two columns. Narrow to these.
    for (let round = 0; round < 6 && to - from > SMALLEST[axis] / 8; ++round) {
      const window = { file: index, lane, axis, from, to, columns: 512 };
      const { event: events } = await this.source.curve(window);
      const c = upperBound(events, event - 1);
      to = Math.min(to, midpointOf(window, c));
      from = Math.max(from, midpointOf(window, c - 1));
    }
    return (from + to) / 2;
  }

  private tilesHere(): readonly CurveTile[] {
    const state = this.store.get();
    return this.tiles.filter((tile) => belongsTo(tile, state));
  }

  private eventsOf(range: Range): Range {
    const file = this.file();
    if (file !== null && this.isAll(range)) return { from: 0, to: file.events };
    return { from: this.eventAt(range.from), to: Math.max(this.eventAt(range.from), this.eventAt(range.to)) };
  }

  private isAll(range: Range): boolean {
    const domain = this.domain();
    return range.from === domain.from && range.to === domain.to;
  }
}

function columnWidthOf({ window }: CurveTile): number {
  return (window.to - window.from) / window.columns;
}

function sameRange(a: Range, b: Range): boolean {
  return a.from === b.from && a.to === b.to;
}

function belongsTo(tile: CurveTile, state: State): boolean {
  return tile.window.file === state.file && tile.window.lane === state.lane && tile.window.axis === state.axis;
}
