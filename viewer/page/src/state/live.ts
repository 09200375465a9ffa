// State of a live recording: which part of it is shown while it is followed, and how the reader's
// choices carry over when it grows or its window moves.

import { NEVER, NO_ROW, type EventRange, type FileMeta, type LiveMeta, type LiveProgress, type Meta } from '../data/protocol';
import { withoutStacks } from './filter';
import { clampRange, domainOf, type Range } from './navigator';
import { fileOf, laneOf } from './scope';
import type { Selection, State } from './state';

/** How much of a longer recording is shown at first. */
const FIRST_NS = 60e9;

export function liveOf(state: State): LiveMeta | null {
  return fileOf(state)?.live ?? null;
}

/** Returns the window whose numbering events and rows use; 0 if the numbers never change. */
export function windowOf(state: State): number {
  return liveOf(state)?.window ?? 0;
}

export function liveProgressOf(state: State): LiveProgress | null {
  return state.progress?.files.find((file) => file.file === state.file)?.live ?? null;
}

/**
 * The window whose numbers an address uses, and the number of events that were dropped before it.
 */
export interface Place {
  readonly window: number;
  readonly dropped: number;
}

/** Returns null if the numbers never change. */
export function placeOf(state: State): Place | null {
  const live = liveOf(state);
  return live === null ? null : { window: live.window, dropped: live.dropped_events };
}

/**
 * Returns a text that changes when something can be answered for the first time or may have another
 * answer: 'ready 17'.
 */
export function stageOf(state: State): string {
  const stage = state.progress?.files.find((file) => file.file === state.file)?.state ?? '';
  const live = liveOf(state);
  return live === null ? stage : `${stage} ${live.generation}`;
}

/**
 * Returns whether only curves, no blocks, can be asked for at that stage. An unknown stage counts
 * as such.
 */
export function isCoarse(stage: string): boolean {
  return stage === '' || stage.startsWith('waiting') || stage.startsWith('loading') || stage.startsWith('coarse');
}

/** Returns a key that is the same at every event while the newest moment is followed. */
export function momentKey(state: State, event: number): number | 'now' {
  return state.following && state.cursor === null ? 'now' : event;
}

/** The range of timelines when following begins. */
export function firstRange(domain: Range, isTime: boolean): Range {
  return isTime && domain.to - domain.from > FIRST_NS ? { from: domain.to - FIRST_NS, to: domain.to } : domain;
}

/**
 * Returns the range that `range` of the domain `before` becomes while following: its right end is
 * now.
 */
export function followedRange(range: Range, before: Range, now: Range, isWhole: boolean): Range {
  if (isWhole) return now;
  const size = Math.min(range.to - range.from, now.to - now.from);
  return before.to === now.to && range.to === now.to ? range : { from: now.to - size, to: now.to };
}

/**
 * Translates what an address of `place` named into the current numbers. The selected block is
 * dropped unless the window is unchanged.
 */
export function carried(state: State, place: Place): Partial<State> {
  const file = fileOf(state);
  const live = file?.live;
  if (file === null || live === undefined) return {};
  if (place.window < live.first_window || place.window > live.window) {
    return { ...ofNoNumbers(state), range: domainOf(file, state.axis), rangeEvents: { from: 0, to: file.events }, following: true };
  }
  if (place.window === live.window) return {};
  const by = live.dropped_events - place.dropped;
  return { ...movedNumbers(state, by, NO_ROW), range: carriedRange(state, file, by) };
}

function carriedRange({ axis, range }: State, file: FileMeta, by: number): Range {
  if (axis === 'event') return { from: range.from - by, to: range.to - by };
  return axis === 'step' ? domainOf(file, axis) : range; // steps are numbered from the window's first
}

/** Translates a reader's choices into the numbers of another generation. */
export function moved(state: State, next: Meta, row: number): Partial<State> {
  const old = fileOf(state);
  const file = next.files[state.file];
  if (old?.live === undefined || file?.live === undefined) return {};
  if (file.live.first_window !== old.live.first_window) return ofAnother(state, old, file);
  const by = file.live.window === old.live.window ? 0 : file.live.dropped_events - old.live.dropped_events;
  return { lane: movedLane(state, file), ...movedNumbers(state, by, row), range: movedRange(state, old, file, by) };
}

// `by` is the number of events that were dropped since; `row` is the new row of the selected block.
function movedNumbers(state: State, by: number, row: number): Pick<State, 'cursor' | 'base' | 'selection' | 'rangeA' | 'rangeEvents'> {
  const event = (at: number): number => Math.max(0, at - by);
  const { cursor, base, rangeA, rangeEvents } = state;
  return {
    cursor: cursor === null ? null : event(cursor),
    base: base === null ? null : event(base),
    selection: movedSelection(state.selection, event, row),
    rangeA: rangeA === null ? null : movedRangeOfEvents(rangeA, event),
    rangeEvents: by === 0 ? rangeEvents : { from: event(rangeEvents.from), to: event(rangeEvents.to) },
  };
}

// `file` is another recording of the same process.
function ofAnother(state: State, old: FileMeta, file: FileMeta): Partial<State> {
  return {
    lane: movedLane(state, file), ...ofNoNumbers(state),
    range: movedRange(state, old, file, 0), rangeEvents: { from: 0, to: file.events },
  };
}

// Drops everything whose numbers belong to the previous recording.
function ofNoNumbers(state: State): Partial<State> {
  return { cursor: null, base: null, selection: { kind: 'none' }, rangeA: null, filter: withoutStacks(state.filter) };
}

function movedRange(state: State, old: FileMeta, file: FileMeta, by: number): Range {
  const { axis, range } = state;
  const before = domainOf(old, axis);
  const now = domainOf(file, axis);
  if (state.following) {
    const isWhole = range.from <= before.from && range.to >= before.to;
    return followedRange(range, before, now, isWhole);
  }
  const shift = axis === 'event' ? by : axis === 'step' ? droppedSteps(old, file) : 0;
  return clampRange({ from: range.from - shift, to: range.to - shift }, now, axis);
}

// Returns how many steps were dropped. Steps are numbered from the window's first, so a step is
// recognized by its begin time.
function droppedSteps(old: FileMeta, file: FileMeta): number {
  const first = file.steps.begin_ns[0];
  const at = first === undefined ? -1 : old.steps.begin_ns.indexOf(first);
  return Math.max(0, at);
}

// A new heap may have taken the number of the lane.
function movedLane(state: State, file: FileMeta): number {
  const lane = laneOf(state);
  if (lane === null) return state.lane;
  return file.lanes.find((each) => each.device === lane.device && each.heap === lane.heap)?.lane ?? file.lanes[0]?.lane ?? 0;
}

function movedSelection(selection: Selection, event: (at: number) => number, row: number): Selection {
  switch (selection.kind) {
    case 'block':
      return row === NO_ROW ? { kind: 'none' } : { kind: 'block', row };
    case 'instant':
      return { kind: 'instant', event: event(selection.event) };
    case 'range':
      return movedRangeOfEvents(selection, event);
    default:
      return selection;
  }
}

function movedRangeOfEvents<R extends EventRange>(range: R, event: (at: number) => number): R {
  return { ...range, from: event(range.from), to: range.to === NEVER ? NEVER : event(range.to) };
}
