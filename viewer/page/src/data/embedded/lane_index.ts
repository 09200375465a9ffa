// The blocks of a lane on an axis, in stack order, indexed by their duration.

import type { Blocks } from './lane_data';
import type { Positions } from './positions';
import { lowerBound, upperBound } from '../../base/binary_search';

const CLASSES = 64;

/** Returns the power of two of a duration. */
export function durationClass(duration: number, units: number): number {
  const count = duration * units;
  if (count < 1) return 0;
  const near = Math.floor(Math.log2(count)); // may have been rounded up
  return Math.min(CLASSES - 1, 2 ** near > count ? near - 1 : near);
}

export class LaneIndex {
  readonly start: Float64Array;
  readonly end: Float64Array; // Infinity: never
  /** Blocks in stack order; those of class c are [classBegin[c + 1], classBegin[c]). */
  private readonly order: Uint32Array;
  private readonly classBegin = new Uint32Array(CLASSES + 1);
  private readonly orderedStart: Float64Array;
  private sortedEnds: Float64Array | null = null;

  constructor(
    blocks: Blocks,
    private readonly positions: Positions,
  ) {
    const { count, birth, death } = blocks;
    this.start = new Float64Array(count);
    this.end = new Float64Array(count);
    const classes = new Uint8Array(count);
    const sizes = new Uint32Array(CLASSES);
    for (let i = 0; i < count; i++) {
      this.start[i] = positions.of(birth[i]!);
      this.end[i] = positions.of(death[i]!);
      classes[i] = durationClass(this.durationOf(i), positions.units);
      sizes[classes[i]!]!++;
    }
    for (let c = CLASSES - 1; c >= 0; c--) this.classBegin[c] = this.classBegin[c + 1]! + sizes[c]!;
    const next = Uint32Array.from(this.classBegin.subarray(1));
    this.order = new Uint32Array(count);
    this.orderedStart = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const at = next[classes[i]!]!++;
      this.order[at] = i;
      this.orderedStart[at] = this.start[i]!;
    }
  }

  /**
   * Calls `call`, in stack order, for each block that lives in [from, to) and at least `atLeast`
   * long.
   */
  forEach(from: number, to: number, atLeast: number, call: (block: number) => void): void {
    const lowest = durationClass(atLeast, this.positions.units);
    for (let c = CLASSES - 1; c >= lowest; c--) {
      const begin = this.classBegin[c + 1]!;
      const end = this.classBegin[c]!;
      if (begin === end) continue;
      // No block of a class is longer than the upper limit of the class, so earlier blocks have
      // ended.
      const longest = 2 ** (c + 1) / this.positions.units;
      const first = lowerBound(this.orderedStart, Math.min(from, this.positions.end) - longest, begin, end);
      const last = lowerBound(this.orderedStart, to, first, end);
      for (let k = first; k < last; k++) {
        const block = this.order[k]!;
        if (this.end[block]! > from && this.durationOf(block) >= atLeast) call(block);
      }
    }
  }

  // A block that is never freed counts as freed at the last event.
  private durationOf(block: number): number {
    return Math.min(this.end[block]!, this.positions.end) - this.start[block]!;
  }

  /** Returns the number of blocks that live in [from, to). */
  countIn(from: number, to: number): number {
    this.sortedEnds ??= this.end.slice().sort();
    return lowerBound(this.start, to) - upperBound(this.sortedEnds, from);
  }
}
