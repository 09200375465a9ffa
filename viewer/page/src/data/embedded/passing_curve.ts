// Computes the bytes that match a filter at the peak of each column, by the rules of
// PassingCurve (protocol.ts), over a standalone file. viewer/questions/passing_curve.h does the
// same.

import { lowerBound } from '../../base/binary_search';
import type { PassingCurve, PassingQuery } from '../protocol';
import type { BlockTest } from './block_filter';
import type { Lane } from './lane_data';
import { columnEvents, type AxisContext, type LaneTotals } from './select_curve';

export interface PassingContext extends AxisContext {
  readonly lane: Lane;
  readonly totals: LaneTotals;
}

/**
 * Computes the curve. If `test` is null, every block matches, also those that are not in the file.
 */
export function passingCurve(query: PassingQuery, test: BlockTest | null, context: PassingContext): PassingCurve {
  const live = new Float64Array(query.columns).fill(NaN);
  const { peak, known } = columnEvents(query, context, context.totals);
  const events = peak.subarray(known.from, known.to);
  if (test === null) live.set(Array.from(events, (event) => context.totals.liveAt(event)), known.from);
  else live.set(passingAfter(events, context.lane, test), known.from);
  return { query, live };
}

/** Returns the bytes of the matching blocks after each of some events, which ascend. */
function passingAfter(events: Uint32Array, { blocks, kinds }: Lane, test: BlockTest): Float64Array {
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
