// Maps two recordings to one axis. If steps are aligned, position k + f is the fraction f (of its
// events) into the k-th pair of steps of both; [-1, 0] is what precedes the first pair and [n, n +
// 1] what follows the last. Without steps the axis is that of the recordings: time or events.

import { upperBound } from '../../base/binary_search';
import type { Compare, CurveTile, FileMeta } from '../../data/protocol';

export interface Alignment {
  readonly from: number; // of the common axis
  readonly to: number;
  /** The labelled positions: both ends, and the midpoints of steps or the bounds of equal parts. */
  readonly ticks: readonly number[];
  /** Returns the position on `side`'s own axis. */
  readonly own: (position: number, side: 0 | 1) => number;
}

const PARTS = 6;
const MAX_STEPS = 12; // maximum number of labelled steps

function stepTicks(steps: number): number[] {
  const every = Math.ceil(steps / MAX_STEPS);
  return Array.from({ length: Math.ceil(steps / every) }, (_, i) => i * every + 0.5);
}

export function align(compare: Pick<Compare, 'aligned_by' | 'steps'>, files: readonly [FileMeta, FileMeta]): Alignment {
  const { steps } = compare;
  if (compare.aligned_by !== 'step' || steps.length === 0) {
    const length = (file: FileMeta): number => (compare.aligned_by === 'event' ? file.events : file.end_ns);
    const to = Math.max(1, length(files[0]), length(files[1]));
    return { from: 0, to, ticks: Array.from({ length: PARTS + 1 }, (_, i) => (to * i) / PARTS), own: (position) => position };
  }
  const knots = ([0, 1] as const).map((side) => {
    const begins = steps.map((pair) => pair[side]);
    return [0, ...begins, endOfStep(files[side], begins.at(-1)!), files[side].events];
  });
  return {
    from: -1,
    to: steps.length + 1,
    ticks: [-1, ...stepTicks(steps.length), steps.length + 1],
    own: (position, side) => {
      const at = Math.min(Math.max(Math.floor(position), -1), steps.length);
      const begin = knots[side]![at + 1]!;
      return begin + (knots[side]![at + 2]! - begin) * Math.min(1, position - at);
    },
  };
}

function endOfStep(file: FileMeta, begin: number): number {
  const number = stepNumber(file, begin);
  return number === null ? file.events : Math.min(file.events, file.steps.end[number - 1]!);
}

/**
 * Names the pair of steps at a position: 'step 3', or 'step 3 / 5' if the two steps have different
 * numbers.
 */
export function pairWords(compare: Pick<Compare, 'steps'>, files: readonly [FileMeta, FileMeta], position: number): string {
  const at = Math.floor(position);
  const pair = compare.steps[at];
  if (pair === undefined) return at < 0 ? 'before' : 'after';
  const [one, two] = [stepNumber(files[0], pair[0]), stepNumber(files[1], pair[1])];
  return one === two ? `step ${one ?? at + 1}` : `step ${one ?? '?'} / ${two ?? '?'}`;
}

export interface AlignedCurve {
  readonly min: Float64Array; // NaN: the recording has no data there
  readonly max: Float64Array;
}

/**
 * Resamples the live curve of a side to `columns` columns of the common axis, from a tile of its
 * own axis.
 */
export function resample(tile: CurveTile, alignment: Alignment, side: 0 | 1, columns: number): AlignedCurve {
  const live = tile.series.get('live');
  const out = { min: new Float64Array(columns).fill(NaN), max: new Float64Array(columns).fill(NaN) };
  if (live === undefined) return out;
  const { from, to, columns: count } = tile.window;
  const width = (alignment.to - alignment.from) / columns;
  const columnOf = (position: number): number => ((alignment.own(position, side) - from) / (to - from)) * count;
  for (let c = 0; c < columns; c++) {
    const left = columnOf(alignment.from + c * width);
    const right = columnOf(alignment.from + (c + 1) * width);
    const first = Math.floor(left);
    if (first < 0 || first >= count) continue;
    const last = Math.max(first, Math.min(count, Math.ceil(right)) - 1);
    let min = Infinity;
    let max = -Infinity;
    for (let k = first; k <= last; k++) {
      min = Math.min(min, live.min[k]!);
      max = Math.max(max, live.max[k]!);
    }
    out.min[c] = min;
    out.max[c] = max;
  }
  return out;
}

/**
 * Returns the number, from 1, of the step of a file that begins at `begin`, or null if none does.
 */
export function stepNumber(file: Pick<FileMeta, 'steps'>, begin: number): number | null {
  const at = upperBound(file.steps.begin, begin) - 1;
  return file.steps.begin[at] === begin ? at + 1 : null;
}
