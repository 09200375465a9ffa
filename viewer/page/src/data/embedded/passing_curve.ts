// Computes the bytes that match a filter at the midpoint of each column, by the rules of
// PassingCurve (protocol.ts), over a standalone file. viewer/questions/passing_curve.h does the
// same.

import { lowerBound } from '../../base/binary_search';
import type { PassingCurve, PassingQuery } from '../protocol';
import type { BlockTest } from './block_filter';
import type { Lane } from './lane_data';
import { eventOfColumn, type AxisContext, type LaneTotals } from './select_curve';

export interface PassingContext extends AxisContext {
  readonly lane: Lane;
  readonly totals: LaneTotals;
}

/**
 * Computes the curve. If `test` is null, every block matches, also those that are not in the file.
 */
export function passingCurve(query: PassingQuery, test: BlockTest | null, context: PassingContext): PassingCurve {
  const live = new Float64Array(query.columns).fill(NaN);
  const events: number[] = []; // of the known columns, which are consecutive
  let first = 0;
  for (let c = 0; c < query.columns; c++) {
    const event = eventOfColumn(query, c, context);
    if (event === null) continue;
    if (events.length === 0) first = c;
    events.push(event);
  }
  if (test === null) live.set(events.map((event) => context.totals.liveAt(event)), first);
  else live.set(passingAfter(events, context.lane, test), first);
  return { query, live };
}

/** Returns the bytes of the matching blocks after each of some events, which ascend. */
function passingAfter(events: readonly number[], { blocks, kinds }: Lane, test: BlockTest): Float64Array {
  const { count, birth, death, kind } = blocks;
  const changes = new Float64Array(events.length + 1);
  let column = 0;
  for (let i = 0; i < count; i++) {
    // Blocks are sorted by birth.
    while (column < events.length && events[column]! < birth[i]!) column++;
    if (column === events.length) break;
    if (death[i]! <= events[column]! || !test(i)) continue;
    const size = kinds.size[kind[i]!]!;
    changes[column]! += size;
    changes[lowerBound(events, death[i]!, column, events.length)]! -= size;
  }
  let bytes = 0;
  return changes.subarray(0, events.length).map((change) => (bytes += change));
}
