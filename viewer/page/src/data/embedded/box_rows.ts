// Finds the blocks in a box of a picture (RangeBox in protocol.ts) over a standalone file, by the
// rules of viewer/questions/box_rows.h. Blocks that were left out of the file have no place in a
// stack.

import { lowerBound, upperBound } from '../../base/binary_search';
import type { EventRange, RangeBox } from '../protocol';
import { ColumnHeights } from './column_heights';
import { placeOf, type Lane } from './lane_data';
import type { LaneIndex } from './lane_index';
import type { Positions } from './positions';
import { columnEvents, type LaneTotals } from './select_curve';

const MOMENTS = 256;

/** What a box needs beside the lane: of the box's axis. */
export interface BoxContext {
  readonly positions: Positions;
  readonly index: LaneIndex;
}

export interface BoxBlocks {
  readonly blocks: readonly number[];
  readonly peak: number; // event
}

export function blocksInBox(range: EventRange, box: RangeBox, lane: Lane, totals: LaneTotals, context: BoxContext): BoxBlocks {
  const { birth, death, kind } = lane.blocks;
  const { size } = lane.kinds;
  const moments = momentsOf(range, totals, context.positions);
  const changes = new Float64Array(moments.length + 1);
  const blocks: number[] = [];
  const columnsOf = (block: number): readonly [number, number] => {
    const first = lowerBound(moments, birth[block]!);
    return [first, lowerBound(moments, death[block]!, first, moments.length)];
  };
  const take = (block: number, first: number, last: number): void => {
    blocks.push(block);
    changes[first]! += size[kind[block]!]!;
    changes[last]! -= size[kind[block]!]!;
  };
  if (box.layout === 'stacked') {
    const heights = new ColumnHeights(moments.length);
    context.index.forEach(-Infinity, Infinity, 0, (block) => {
      const [first, last] = columnsOf(block);
      if (first >= last) return;
      const bytes = size[kind[block]!]!;
      if (heights.hasBetween(first, last, box.low - bytes, box.high)) take(block, first, last);
      heights.add(first, last, bytes);
    });
  } else {
    const born = upperBound(birth, range.to);
    for (let i = 0; i < born; i++) {
      const place = placeOf(lane, i);
      if (death[i]! > range.from && place < box.high && place + size[kind[i]!]! > box.low) take(i, ...columnsOf(i));
    }
  }
  return { blocks, peak: moments[highest(changes, moments.length)]! };
}

function momentsOf({ from, to }: EventRange, totals: LaneTotals, positions: Positions): number[] {
  const window = { from: positions.of(from), to: positions.of(to), columns: MOMENTS };
  const moments: number[] = [];
  if (window.from < window.to) {
    for (const peak of columnEvents(window, { positions }, totals).peak) {
      const event = Math.min(Math.max(peak, from), to);
      if (moments.length === 0 || moments.at(-1)! < event) moments.push(event);
    }
  }
  if (moments.length === 0 || moments.at(-1)! < to) moments.push(to);
  return moments;
}

/** Returns the index after whose change the sum is highest, the first of them. */
function highest(changes: Float64Array, count: number): number {
  let [sum, most, at] = [0, 0, 0];
  for (let i = 0; i < count; i++) {
    sum += changes[i]!;
    if (sum > most) [most, at] = [sum, i];
  }
  return at;
}
