// How many blocks the timeline draws, in words.

import { formatCount } from '../../base/format_bytes';
import { plural } from '../../base/plural';
import { NO_ROW, type BlockTile } from '../../data/protocol';

/** '1,583 blocks drawn, 6,060 aggregated': these are drawn as sums. */
export function readout({ row, hidden }: Pick<BlockTile, 'row' | 'hidden'>): string {
  let count = 0;
  for (const each of row) if (each !== NO_ROW) ++count;
  if (count === 0 && hidden > 0) return `${plural(hidden, 'block')}, all aggregated: zoom in to see ${hidden === 1 ? 'it' : 'them'}`;
  return `${plural(count, 'block')} drawn, ${formatCount(hidden)} aggregated`;
}
