// Finds the item at a point in data space. Sorts the quads over a position by height once and
// searches them by bisection. Moving up and down in one column does not sort again.

import { upperBound } from '../../base/binary_search';
import type { Quads } from '../../render/quads';

export class HitTest {
  private from = NaN;
  private to = NaN;
  private column: number[] = []; // quads over [from, to), from the bottom up
  private bottoms: number[] = [];
  private tops: number[] = []; // the highest top of a quad and those before it

  constructor(private readonly quads: Quads) {}

  /** Returns an item of `quads`, or null if there is none at that point. */
  itemAt(position: number, value: number): number | null {
    if (!(position >= this.from && position < this.to)) this.gather(position);
    // Quads may overlap a little, by the tolerance of the layout.
    for (let i = upperBound(this.bottoms, value) - 1; i >= 0 && value < this.tops[i]!; --i) {
      const quad = this.column[i]!;
      if (value < this.quads.y1[quad]!) return this.quads.item[quad]!;
    }
    return null;
  }

  /** Returns the items over a position, from the bottom up. */
  itemsAt(position: number): readonly number[] {
    if (!(position >= this.from && position < this.to)) this.gather(position);
    return this.column.map((quad) => this.quads.item[quad]!);
  }

  private gather(position: number): void {
    const { quads } = this;
    this.column = [];
    this.from = -Infinity;
    this.to = Infinity;
    for (let i = 0; i < quads.count; ++i) {
      const [x0, x1] = [quads.x0[i]!, quads.x1[i]!];
      if (x0 <= position && position < x1) this.column.push(i);
      // The list stays valid as far as no quad begins or ends.
      if (x0 <= position) this.from = Math.max(this.from, x0);
      else this.to = Math.min(this.to, x0);
      if (x1 <= position) this.from = Math.max(this.from, x1);
      else this.to = Math.min(this.to, x1);
    }
    this.column.sort((a, b) => quads.y0[a]! - quads.y0[b]!);
    this.bottoms = this.column.map((i) => quads.y0[i]!);
    let top = -Infinity;
    this.tops = this.column.map((i) => (top = Math.max(top, quads.y1[i]!)));
  }
}
