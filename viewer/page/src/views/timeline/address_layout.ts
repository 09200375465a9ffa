// The layout by address: a block is one rectangle at its address, from birth to death.

import type { BlockTile } from '../../data/protocol';
import { QuadWriter } from '../../render/quads';
import type { LaidOut } from './stacked_layout';

export function layoutAddress(tile: BlockTile): LaidOut {
  const writer = new QuadWriter();
  const { from, to } = tile.query;
  for (let i = 0; i < tile.row.length; ++i) {
    const start = Math.max(from, tile.start[i]!);
    const end = Math.min(to, tile.end[i]!);
    if (end > start) writer.add(i, start, end, tile.place[i]!, tile.place[i]! + tile.size[i]!);
  }
  return { quads: writer.finish(), items: tile.row.length };
}
