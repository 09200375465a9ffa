// The stacked layout: places the items of a tile from the bottom up, each on top of all earlier
// items that are live in the same column. Memory that is neither a block nor a run is placed on
// top, as areas by category.
//
//   bytes                      A: long lived, at the bottom; B rests on A; C came later and moved
//     |      ┌─C─┐             down when B was freed. Where the height under C changes, it gets
//     | ┌─B──┤   └──┐          another quad: at most one per column; neighbours of one height are
//     |┌┴────┴─A────┴──┐       merged.
//     └────────────────── axis
//
// A height change of less than `tolerance` bytes does not move a quad; so no quad is off by more
// than that. Work is done in slices, so that frames continue while a tile is laid out.

import { edgeOf } from '../../data/columns';
import { NO_ROW, type BlockTile, type CurveTile } from '../../data/protocol';
import { QuadWriter, type Quads } from '../../render/quads';
import { StepHeights } from './step_heights';

export interface LaidOut {
  readonly quads: Quads;
  /**
   * Items of the tile, then one item for the rest of each category. `quads.item` uses these
   * indexes.
   */
  readonly items: number;
}

export class StackedLayout {
  private readonly heights: StepHeights;
  private readonly writer = new QuadWriter();
  private readonly categories: number;
  private readonly ofItems: readonly Float64Array[]; // steps of the shown bytes, by category
  private item = 0;

  /**
   * `curve` must have the same window. If it has no categories, there are no areas for the rest.
   */
  constructor(
    private readonly tile: BlockTile,
    private readonly curve: CurveTile,
    private readonly tolerance: number,
  ) {
    const { columns } = tile.query;
    this.heights = new StepHeights(columns);
    this.categories = curve.categories.length / columns;
    this.ofItems = Array.from({ length: this.categories }, () => new Float64Array(columns + 1));
  }

  /**
   * Works until `now()`, in ms, reaches `until`, but does at least a little. Returns true when
   * done.
   */
  run(until: number, now: () => number): boolean {
    const items = this.tile.row.length;
    while (this.item < items) {
      if (this.tile.row[this.item] === NO_ROW) this.addRun(this.item);
      else this.addBlock(this.item);
      ++this.item;
      if ((this.item & 63) === 0 && now() >= until) return false;
    }
    return true;
  }

  /** REQUIRES: `run` has returned true. */
  finish(): LaidOut {
    for (let code = 0; code < this.categories; ++code) this.sumUp(this.ofItems[code]!);
    this.addRest();
    return { quads: this.writer.finish(), items: this.tile.row.length + this.categories };
  }

  private addBlock(item: number): void {
    const { tile } = this;
    const first = tile.first[item]!;
    const last = tile.last[item]!;
    if (first >= last) return;
    const size = tile.size[item]!;
    this.addQuads(item, first, last, size);
    this.count(tile.category[item]!, first, last, size);
  }

  // Puts `size` bytes on top of the current heights.
  private addQuads(item: number, first: number, last: number, size: number): void {
    let begin = first;
    let place = NaN;
    this.heights.walk(first, last, (from, _to, height) => {
      if (Number.isNaN(place)) place = height;
      if (Math.abs(height - place) <= this.tolerance) return;
      this.quad(item, begin, from, place, place + size);
      begin = from;
      place = height;
    });
    this.quad(item, begin, last, place, place + size);
    this.heights.raise(first, last, size);
  }

  private count(category: number, first: number, last: number, size: number): void {
    const steps = this.ofItems[category];
    if (steps === undefined) return;
    steps[first]! += size;
    steps[last]! -= size;
  }

  private addRun(item: number): void {
    const { run_begin: begin, run_column: column, run_bytes: bytes } = this.tile;
    for (let k = begin[item]!; k < begin[item + 1]!; ++k) {
      const last = k + 1 < begin[item + 1]! ? column[k + 1]! : this.heights.columns;
      if (bytes[k] !== 0) this.addRunPart(item, column[k]!, last, bytes[k]!);
    }
  }

  private addRunPart(item: number, first: number, last: number, bytes: number): void {
    this.addQuads(item, first, last, bytes);
    this.count(this.tile.category[item]!, first, last, bytes);
  }

  // Divides what is above the items among the categories, in proportion to their bytes outside of
  // the items.
  private addRest(): void {
    const { categories, curve } = this;
    const { columns } = this.tile.query;
    const live = curve.series.get('live');
    if (categories === 0 || live === undefined) return;
    const open: { begin: number; low: number; high: number }[] = Array.from({ length: categories }, () => ({ begin: 0, low: 0, high: 0 }));
    const shares = new Float64Array(categories);
    for (let c = 0; c < columns; ++c) {
      let low = this.heights.at(c);
      const rest = Math.max(0, live.max[c]! - low);
      let all = 0;
      for (let code = 0; code < categories; ++code) {
        shares[code] = Math.max(0, curve.categories[code * columns + c]! - this.ofItems[code]![c]!);
        all += shares[code]!;
      }
      for (let code = 0; code < categories; ++code) {
        const high = low + (all > 0 ? (rest * shares[code]!) / all : 0);
        const area = open[code]!;
        if (Math.abs(area.low - low) > this.tolerance || Math.abs(area.high - high) > this.tolerance) {
          this.closeRest(code, area, c);
          open[code] = { begin: c, low, high };
        }
        low = high;
      }
    }
    // Written category by category, because the quads of an item must be consecutive.
    for (let code = 0; code < categories; ++code) {
      this.closeRest(code, open[code]!, columns);
      for (const [begin, end, low, high] of this.rests[code] ?? []) this.quad(this.tile.row.length + code, begin, end, low, high);
    }
  }

  private readonly rests: (readonly [number, number, number, number])[][] = [];

  private closeRest(code: number, area: { readonly begin: number; readonly low: number; readonly high: number }, end: number): void {
    if (area.high > area.low && end > area.begin) (this.rests[code] ??= []).push([area.begin, end, area.low, area.high]);
  }

  private quad(item: number, begin: number, end: number, low: number, high: number): void {
    const { query } = this.tile;
    this.writer.add(item, edgeOf(query, begin), edgeOf(query, end), low, high);
  }

  private sumUp(steps: Float64Array): void {
    for (let c = 1; c < steps.length; ++c) steps[c]! += steps[c - 1]!;
  }
}

/** Lays out a tile at once, for tests and for tiles known to be small. */
export function layoutStacked(tile: BlockTile, curve: CurveTile, tolerance: number): LaidOut {
  const layout = new StackedLayout(tile, curve, tolerance);
  layout.run(Infinity, () => 0);
  return layout.finish();
}
