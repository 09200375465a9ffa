// The bytes live after each event of one lane, with their extremes over any range of events.
//
// It is a list of changes with the total after each. The extremes of 64 and of 4,096 changes are
// stored, so that a range costs a few hundred reads at any length.

import { upperBound } from '../../base/binary_search';

const LEAF = 64;

export interface Extremes {
  min: number;
  max: number;
}

export class TotalCurve {
  private readonly levels: readonly { readonly min: Float64Array; readonly max: Float64Array }[];

  /** `events` ascend and begin with 0; `totals[i]` is valid from events[i] on. */
  constructor(
    readonly events: ArrayLike<number>,
    readonly totals: Float64Array,
  ) {
    const levels = [];
    let below = { min: totals, max: totals };
    while (below.min.length > LEAF) {
      below = fold(below.min, below.max);
      levels.push(below);
    }
    this.levels = levels;
  }

  /** Returns the index of the change that is in effect after an event. */
  indexAt(event: number): number {
    return Math.max(0, upperBound(this.events, event) - 1);
  }

  at(event: number): number {
    return this.totals[this.indexAt(event)] ?? 0;
  }

  /** Returns the extremes over the states after the events from..to, both included. */
  extremes(from: number, to: number): Extremes {
    const out = { min: Infinity, max: -Infinity };
    if (this.totals.length === 0) return { min: 0, max: 0 };
    this.gather(this.indexAt(from), this.indexAt(to) + 1, -1, out);
    return out;
  }

  /** Returns the first of the events from..to after which the total is highest. */
  peakEvent(from: number, to: number): number {
    const [begin, end] = [this.indexAt(from), this.indexAt(to) + 1];
    const { max } = this.extremes(from, to);
    return Math.max(from, this.events[this.search(begin, end, -1, max)] ?? from);
  }

  // Returns the first index in [from, to) of a level with that maximum, as an index of `totals`; -1
  // if there is none.
  private search(from: number, to: number, level: number, most: number): number {
    const first = Math.ceil(from / LEAF);
    const last = Math.floor(to / LEAF);
    if (first >= last || level + 1 >= this.levels.length) return this.scanFor(from, to, level, most);
    const before = this.scanFor(from, first * LEAF, level, most);
    if (before >= 0) return before;
    const between = this.search(first, last, level + 1, most);
    return between >= 0 ? between : this.scanFor(last * LEAF, to, level, most);
  }

  private scanFor(from: number, to: number, level: number, most: number): number {
    const max = level < 0 ? this.totals : this.levels[level]!.max;
    for (let i = from; i < to; i++) {
      if (max[i] === most) return level < 0 ? i : this.scanFor(i * LEAF, (i + 1) * LEAF, level - 1, most);
    }
    return -1;
  }

  private gather(from: number, to: number, level: number, out: Extremes): void {
    const values = level < 0 ? { min: this.totals, max: this.totals } : this.levels[level]!;
    const first = Math.ceil(from / LEAF);
    const last = Math.floor(to / LEAF);
    if (first >= last || level + 1 >= this.levels.length) {
      scan(values.min, values.max, from, to, out);
      return;
    }
    scan(values.min, values.max, from, first * LEAF, out);
    scan(values.min, values.max, last * LEAF, to, out);
    this.gather(first, last, level + 1, out);
  }
}

function scan(min: Float64Array, max: Float64Array, from: number, to: number, out: Extremes): void {
  for (let i = from; i < to; i++) {
    if (min[i]! < out.min) out.min = min[i]!;
    if (max[i]! > out.max) out.max = max[i]!;
  }
}

function fold(min: Float64Array, max: Float64Array): { min: Float64Array; max: Float64Array } {
  const count = Math.ceil(min.length / LEAF);
  const folded = { min: new Float64Array(count), max: new Float64Array(count) };
  for (let i = 0; i < count; i++) {
    const out = { min: Infinity, max: -Infinity };
    scan(min, max, i * LEAF, Math.min(min.length, (i + 1) * LEAF), out);
    folded.min[i] = out.min;
    folded.max[i] = out.max;
  }
  return folded;
}
