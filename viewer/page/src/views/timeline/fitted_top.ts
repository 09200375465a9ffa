// The height of the stacked plot while no band of bytes was chosen.

import { columnAt } from '../../data/columns';
import type { CurveTile, LaneMeta } from '../../data/protocol';
import type { Range } from '../../state/navigator';

const MOST_RESERVED = 2; // peaks; more would leave the blocks too little height

/**
 * Returns the bytes at the top of the plot that shows everything: a little more than is ever live or
 * reserved. `predicted`: what would be reserved with another setting, if that is shown; then nothing
 * that is reserved is left out.
 */
export function topOf({ peak_bytes: peak, peak_reserved_bytes: reserved }: Pick<LaneMeta, 'peak_bytes' | 'peak_reserved_bytes'>, predicted: number | null = null): number {
  const most = predicted === null ? Math.min(reserved ?? 0, MOST_RESERVED * peak) : Math.max(reserved ?? 0, predicted);
  return Math.max(1024, 1.06 * Math.max(peak, most));
}

/**
 * Returns the bytes at the top of the plot: enough for what is live in the range, `top` divided by a
 * power of two, so that the scale rarely changes when the range is moved. It is `top` if the range
 * contains the lane's peak, or the curve does not cover it.
 */
export function fittedTop({ window, series }: CurveTile, range: Range, top: number, peak: number): number {
  const live = series.get('live');
  if (live === undefined || range.from < window.from || range.to > window.to) return top;
  let most = 1024;
  for (let c = columnAt(window, range.from); c <= columnAt(window, range.to); ++c) most = Math.max(most, live.max[c]!);
  // NaN if the range includes what is not known.
  return most > 0 ? top / 2 ** Math.max(0, Math.floor(Math.log2(peak / most))) : top;
}
