// Rectangles in data space, as columns. Layouts make them and renderers draw them. The quads of one
// item are consecutive.

export interface Quads {
  readonly count: number;
  readonly x0: Float64Array;
  readonly x1: Float64Array;
  readonly y0: Float64Array;
  readonly y1: Float64Array;
  readonly item: Uint32Array;
}

export class QuadWriter {
  private count = 0;
  private x0 = new Float64Array(1024);
  private x1 = new Float64Array(1024);
  private y0 = new Float64Array(1024);
  private y1 = new Float64Array(1024);
  private item = new Uint32Array(1024);

  add(item: number, x0: number, x1: number, y0: number, y1: number): void {
    if (this.count === this.item.length) this.grow();
    const at = this.count++;
    this.item[at] = item;
    this.x0[at] = x0;
    this.x1[at] = x1;
    this.y0[at] = y0;
    this.y1[at] = y1;
  }

  finish(): Quads {
    const { count } = this;
    const cut = (values: Float64Array): Float64Array => values.subarray(0, count);
    return { count, x0: cut(this.x0), x1: cut(this.x1), y0: cut(this.y0), y1: cut(this.y1), item: this.item.subarray(0, count) };
  }

  private grow(): void {
    const larger = (values: Float64Array): Float64Array<ArrayBuffer> => {
      const result = new Float64Array(values.length * 2);
      result.set(values);
      return result;
    };
    this.x0 = larger(this.x0);
    this.x1 = larger(this.x1);
    this.y0 = larger(this.y0);
    this.y1 = larger(this.y1);
    const item = new Uint32Array(this.item.length * 2);
    item.set(this.item);
    this.item = item;
  }
}

/** Quads sorted by colour, because changing the colour costs more than drawing a rectangle. */
export interface ColoredQuads {
  readonly quads: Quads; // copies, read sequentially in every frame
  readonly colors: readonly string[];
  readonly begin: Uint32Array; // colour i has the quads [begin[i], begin[i + 1])
}

export function sortByColor(quads: Quads, colors: readonly string[], colorOfItem: ArrayLike<number>): ColoredQuads {
  const { count, item } = quads;
  const begin = new Uint32Array(colors.length + 1);
  for (let i = 0; i < count; ++i) ++begin[colorOfItem[item[i]!]! + 1]!;
  for (let c = 0; c < colors.length; ++c) begin[c + 1]! += begin[c]!;
  const next = begin.slice();
  const column = (): Float64Array => new Float64Array(count);
  const sorted = { count, x0: column(), x1: column(), y0: column(), y1: column(), item: new Uint32Array(count) };
  for (let i = 0; i < count; ++i) {
    const at = next[colorOfItem[item[i]!]!]!++;
    sorted.x0[at] = quads.x0[i]!;
    sorted.x1[at] = quads.x1[i]!;
    sorted.y0[at] = quads.y0[i]!;
    sorted.y1[at] = quads.y1[i]!;
    sorted.item[at] = item[i]!;
  }
  return { quads: sorted, colors, begin };
}

/**
 * Returns the first quad of each item, and one more entry. REQUIRES: quads are in the order of
 * items.
 */
export function quadsOfItems(quads: Quads, items: number): Uint32Array {
  const begin = new Uint32Array(items + 1);
  for (let i = 0; i < quads.count; ++i) ++begin[quads.item[i]! + 1]!;
  for (let i = 0; i < items; ++i) begin[i + 1]! += begin[i]!;
  return begin;
}
