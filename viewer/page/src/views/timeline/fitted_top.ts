// The height of the stacked plot while no band of bytes was chosen.

import { columnAt } from '../../data/columns';
import type { CurveTile } from '../../data/protocol';
import type { Range } from '../../state/navigator';

/**
 * Returns the bytes at the top of the plot: enough for what the range shows, `top` divided by a power
 * of two, so that the scale rarely changes when the range is moved. Returns `top` if the curve does
 * not cover the range.
 */
export function fittedTop({ window, series }: CurveTile, range: Range, top: number): number {
  const live = series.get('live');
  if (live === undefined || range.from < window.from || range.to > window.to) return top;
  let most = 1024;
  for (let c = columnAt(window, range.from); c <= columnAt(window, range.to); ++c) most = Math.max(most, live.max[c]!);
  // NaN if the range includes what is not known.
  return most > 0 ? top / 2 ** Math.max(0, Math.floor(Math.log2(top / most))) : top;
}
