// Computes the tile to request for a view: three screens wide and, if zoomed in bytes, three high.
// The width of a column and the height of a row are powers of two of the units of the axes, so that
// a small zoom requests nothing new.

import type { BlockQuery } from '../../data/protocol';
import type { Range } from '../../state/navigator';

const MAX_COLUMNS = 8192;

export interface Looked {
  readonly range: Range;
  readonly domain: Range;
  readonly width: number; // pixels
  readonly low: number;
  readonly high: number;
  readonly top: number; // top of all data
  readonly height: number; // pixels
}

export type TileWindow = Pick<BlockQuery, 'from' | 'to' | 'columns' | 'low' | 'high' | 'rows'>;

export function wantedTile(looked: Looked): TileWindow {
  const { range, domain } = looked;
  const column = columnWidth(looked);
  const room = roomOf(looked);
  const from = Math.floor(Math.max(domain.from, range.from - room) / column) * column;
  const to = Math.ceil(Math.min(domain.to, range.to + room) / column) * column;
  const row = rowHeight(looked);
  const bytes = looked.high - looked.low;
  const low = Math.max(0, Math.floor((looked.low - bytes) / row) * row);
  const high = Math.ceil(Math.min(Math.max(looked.top, looked.high), looked.high + bytes) / row) * row;
  return { from, to, columns: Math.max(1, Math.round((to - from) / column)), low, high, rows: Math.max(1, Math.round((high - low) / row)) };
}

/**
 * Returns whether a tile shows the view at the right resolution, with nothing missing at its edges.
 */
export function covers(tile: TileWindow, looked: Looked): boolean {
  const { range, domain } = looked;
  const isSharp = near((tile.to - tile.from) / tile.columns, columnWidth(looked)) && near((tile.high - tile.low) / tile.rows, rowHeight(looked));
  // The next tile is requested before the edge becomes visible.
  const room = roomOf(looked) / 4;
  const isWide = tile.from <= Math.max(domain.from, range.from - room) && tile.to >= Math.min(domain.to, range.to + room);
  return isSharp && isWide && tile.low <= looked.low && tile.high >= Math.min(looked.top, looked.high);
}

// Returns the margin of a tile on either side of the view.
function roomOf(looked: Looked): number {
  const size = looked.range.to - looked.range.from;
  return Math.min(size, ((MAX_COLUMNS - 2) * columnWidth(looked) - size) / 2);
}

function columnWidth({ range, width }: Looked): number {
  return 2 ** Math.round(Math.log2((range.to - range.from) / Math.max(1, width)));
}

function rowHeight({ low, high, height }: Looked): number {
  return 2 ** Math.max(0, Math.round(Math.log2((high - low) / Math.max(1, height))));
}

function near(a: number, b: number): boolean {
  return Math.abs(a - b) < b * 1e-6;
}
