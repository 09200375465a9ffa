// What each kind of blocks has in a range: the sums from which tables of ranges (range_table.ts)
// are made, as viewer/questions/range_amounts.h.

import { upperBound } from '../../base/binary_search';
import type { EventRange, RangeAmounts } from '../protocol';
import type { BlockTest, FilterContext } from './block_filter';
import { blocksInBox, type BoxContext } from './box_rows';
import type { LaneTotals } from './select_curve';

export interface RangeContext extends FilterContext {
  readonly ns: Float64Array;
  readonly totals: LaneTotals;
  readonly test: BlockTest | null;
}

export type Amounts = { -readonly [K in keyof RangeAmounts]: RangeAmounts[K] };

export interface AmountsOfKinds {
  readonly kinds: Map<number, Amounts>; // only kinds that are there
  readonly peak: number; // event
}

/** `box`: for a range with a box. */
export function sumUpKinds(range: EventRange, box: BoxContext | null, context: RangeContext): AmountsOfKinds {
  const { lane, totals, test } = context;
  if (range.box !== null && box !== null) {
    const { blocks, peak } = blocksInBox(range, range.box, lane, totals, box);
    return { kinds: sumsOf(test === null ? blocks : blocks.filter(test), range, peak, context), peak };
  }
  const peak = totals.peakEvent(range.from, range.to);
  return { kinds: sumsOf(blocksOf(range, context), range, peak, context), peak };
}

function* blocksOf({ from, to }: EventRange, { lane, test }: RangeContext): Generator<number> {
  const { birth, death } = lane.blocks;
  const born = upperBound(birth, to);
  for (let i = 0; i < born; i++) {
    if (death[i]! > from && (test === null || test(i))) yield i;
  }
}

function sumsOf(blocks: Iterable<number>, { from, to }: EventRange, peak: number, { lane, ns }: RangeContext): Map<number, Amounts> {
  const { birth, death, kind } = lane.blocks;
  const kinds = new Map<number, Amounts>();
  for (const i of blocks) {
    const isBornHere = birth[i]! > from;
    const bytes = lane.kinds.size[kind[i]!]!;
    if (!isBornHere && bytes === 0) continue;
    let amounts = kinds.get(kind[i]!);
    if (amounts === undefined) kinds.set(kind[i]!, (amounts = noAmounts()));
    if (birth[i]! <= peak && peak < death[i]!) amounts.bytes += bytes;
    amounts.byte_seconds += (bytes * (ns[Math.min(death[i]!, to)]! - ns[Math.max(birth[i]!, from)]!)) / 1e9;
    if (isBornHere) amounts.allocations++;
    else amounts.growth -= bytes;
    if (to >= death[i]!) continue;
    amounts.growth += bytes;
    amounts.end_bytes += bytes;
  }
  return kinds;
}

export function noAmounts(): Amounts {
  return { bytes: 0, byte_seconds: 0, allocations: 0, growth: 0, end_bytes: 0 };
}

export function addTo(sum: Amounts, amounts: RangeAmounts): void {
  sum.bytes += amounts.bytes;
  sum.byte_seconds += amounts.byte_seconds;
  sum.allocations += amounts.allocations;
  sum.growth += amounts.growth;
  sum.end_bytes += amounts.end_bytes;
}
