// The heights of the columns of a window while blocks are stacked on them. Adds to a range of
// columns, and tests whether some height in a range is between two values. It is a segment tree,
// because a block may span the whole window and there are as many blocks as pixels.

export class ColumnHeights {
  private readonly size: number;
  private readonly added: Float64Array; // added to all columns below a node
  private readonly min: Float64Array; // of the columns below a node, including its own `added`
  private readonly max: Float64Array;

  constructor(columns: number) {
    let size = 1;
    while (size < columns) size *= 2;
    this.size = size;
    this.added = new Float64Array(2 * size);
    this.min = new Float64Array(2 * size);
    this.max = new Float64Array(2 * size);
  }

  /** Adds `bytes` to the columns [from, to). */
  add(from: number, to: number, bytes: number): void {
    this.addBelow(1, 0, this.size, from, to, bytes);
  }

  /** Returns whether a column of [from, to) has a height strictly between `above` and `below`. */
  hasBetween(from: number, to: number, above: number, below: number): boolean {
    return this.searchBelow(1, 0, this.size, from, to, above, below);
  }

  private addBelow(node: number, left: number, right: number, from: number, to: number, bytes: number): void {
    if (from <= left && right <= to) {
      this.added[node]! += bytes;
      this.min[node]! += bytes;
      this.max[node]! += bytes;
      return;
    }
    const middle = (left + right) >>> 1;
    if (from < middle) this.addBelow(2 * node, left, middle, from, to, bytes);
    if (to > middle) this.addBelow(2 * node + 1, middle, right, from, to, bytes);
    this.min[node] = Math.min(this.min[2 * node]!, this.min[2 * node + 1]!) + this.added[node]!;
    this.max[node] = Math.max(this.max[2 * node]!, this.max[2 * node + 1]!) + this.added[node]!;
  }

  private searchBelow(
    node: number,
    left: number,
    right: number,
    from: number,
    to: number,
    above: number,
    below: number,
  ): boolean {
    if (this.min[node]! >= below || this.max[node]! <= above) return false;
    if (from <= left && right <= to) {
      if (this.min[node]! > above || this.max[node]! < below) return true;
    }
    if (right - left === 1) return true;
    const middle = (left + right) >>> 1;
    const inside = [above - this.added[node]!, below - this.added[node]!] as const;
    return (
      (from < middle && this.searchBelow(2 * node, left, middle, from, to, ...inside)) ||
      (to > middle && this.searchBelow(2 * node + 1, middle, right, from, to, ...inside))
    );
  }
}
