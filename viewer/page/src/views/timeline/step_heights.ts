// The heights of the columns under a growing stack, as a step function. Adding a block to a range
// of columns is O(log columns); reading a range costs as much as it has steps, not columns. All
// sums are of whole numbers of bytes, so that nothing is rounded.

export class StepHeights {
  private readonly delta: Float64Array; // height[c] - height[c - 1]
  private readonly sums: Float64Array; // Fenwick tree over delta
  private readonly steps: Uint32Array; // bit c: delta[c] is not 0

  constructor(readonly columns: number) {
    this.delta = new Float64Array(columns);
    this.sums = new Float64Array(columns + 1);
    this.steps = new Uint32Array((columns >>> 5) + 1);
  }

  at(column: number): number {
    let sum = 0;
    for (let i = column + 1; i > 0; i &= i - 1) sum += this.sums[i]!;
    return sum;
  }

  /** Raises the columns [first, last) by `by`. */
  raise(first: number, last: number, by: number): void {
    this.change(first, by);
    if (last < this.columns) this.change(last, -by);
  }

  /** Calls `each` for each maximal range [begin, end) of equal height within [first, last). */
  walk(first: number, last: number, each: (begin: number, end: number, height: number) => void): void {
    let height = this.at(first);
    let begin = first;
    while (begin < last) {
      const end = Math.min(last, this.nextStep(begin + 1));
      each(begin, end, height);
      if (end < last) height += this.delta[end]!;
      begin = end;
    }
  }

  private change(column: number, by: number): void {
    const changed = this.delta[column]! + by;
    this.delta[column] = changed;
    const bit = 1 << (column & 31);
    if (changed === 0) this.steps[column >>> 5]! &= ~bit;
    else this.steps[column >>> 5]! |= bit;
    for (let i = column + 1; i <= this.columns; i += i & -i) this.sums[i]! += by;
  }

  private nextStep(column: number): number {
    let word = column >>> 5;
    let bits = word < this.steps.length ? this.steps[word]! & (-1 << (column & 31)) : 0;
    while (bits === 0) {
      if (++word >= this.steps.length) return this.columns;
      bits = this.steps[word]!;
    }
    return (word << 5) + (31 - Math.clz32(bits & -bits));
  }
}
