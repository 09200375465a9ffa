// The measures by which ranges are sorted and compared.

import type { RangeMeasures, RangeQuery, RangeTotal } from './protocol';

export type Measure = Exclude<RangeQuery['sort'], 'name'>;

export function secondsOf({ from_ns, to_ns }: RangeTotal): number {
  return (to_ns - from_ns) / 1e9;
}

/** `seconds`: the duration of the range. */
export function measureOf(measure: Measure, amounts: RangeMeasures, seconds: number): number {
  switch (measure) {
    case 'inclusive':
      return amounts.inclusive ?? amounts.bytes;
    case 'mean_bytes':
      return seconds > 0 ? amounts.byte_seconds / seconds : amounts.end_bytes;
    case 'allocation_rate':
      return seconds > 0 ? amounts.allocations / seconds : 0;
    default:
      return amounts[measure];
  }
}
