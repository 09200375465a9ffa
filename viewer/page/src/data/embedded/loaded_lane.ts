// A lane of a standalone file, with the indexes that questions need. Each is made once.

import type { Axis, LaneMeta } from '../protocol';
import type { Lane } from './lane_data';
import { LaneIndex } from './lane_index';
import type { Positions } from './positions';
import { LaneTotals } from './select_curve';

export class LoadedLane {
  private readonly indexes = new Map<Axis, LaneIndex>();
  private total: LaneTotals | null = null;
  private byRow: ReadonlyMap<number, number> | null = null;

  constructor(
    readonly number: number,
    readonly meta: LaneMeta,
    readonly data: Lane,
    private readonly categories: number,
  ) {}

  totals(): LaneTotals {
    return (this.total ??= new LaneTotals(this.data, this.categories));
  }
  index(axis: Axis, positions: Positions): LaneIndex {
    let index = this.indexes.get(axis);
    if (index === undefined) this.indexes.set(axis, (index = new LaneIndex(this.data.blocks, positions)));
    return index;
  }
  /** Returns the index of a block by its row, or -1 if it is not in the file. */
  blockOf(row: number): number {
    this.byRow ??= new Map(Array.from(this.data.blocks.row, (r, i) => [r, i]));
    return this.byRow.get(row) ?? -1;
  }
}
