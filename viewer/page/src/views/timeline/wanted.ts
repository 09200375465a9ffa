// Computes the tile to request for a view: three screens wide and, if zoomed in bytes, three high.
// The width of a column and the height of a row are powers of two of the units of the axes, so that
// a small zoom requests nothing new.

import type { BlockQuery } from '../../data/protocol';
import type { Range } from '../../state/navigator';

const MAX_COLUMNS = 8192;

export interface VisibleArea {
  readonly range: Range;
  readonly domain: Range;
  readonly width: number; // pixels; see pixelsOf()
  readonly low: number;
  readonly high: number;
  readonly top: number; // top of all data
  readonly height: number; // pixels
}

export type TileWindow = Pick<BlockQuery, 'from' | 'to' | 'columns' | 'low' | 'high' | 'rows'>;

export function wantedTile(visible: VisibleArea): TileWindow {
  const { range, domain } = visible;
  const column = columnWidth(visible);
  const room = roomOf(visible);
  const from = Math.floor(Math.max(domain.from, range.from - room) / column) * column;
  const to = Math.ceil(Math.min(domain.to, range.to + room) / column) * column;
  const row = rowHeight(visible);
  const bytes = visible.high - visible.low;
  const low = Math.max(0, Math.floor((visible.low - bytes) / row) * row);
  const high = Math.ceil(Math.min(Math.max(visible.top, visible.high), visible.high + bytes) / row) * row;
  return { from, to, columns: Math.max(1, Math.round((to - from) / column)), low, high, rows: Math.max(1, Math.round((high - low) / row)) };
}

/**
 * Returns whether a tile shows the view at the right resolution, with nothing missing at its edges.
 */
export function covers(tile: TileWindow, visible: VisibleArea): boolean {
  const { range, domain } = visible;
  const isSharp = near((tile.to - tile.from) / tile.columns, columnWidth(visible)) && near((tile.high - tile.low) / tile.rows, rowHeight(visible));
  // The next tile is requested before the edge becomes visible.
  const room = roomOf(visible) / 4;
  const isWide = tile.from <= Math.max(domain.from, range.from - room) && tile.to >= Math.min(domain.to, range.to + room);
  return isSharp && isWide && tile.low <= visible.low && tile.high >= Math.min(visible.top, visible.high);
}

// Returns the margin of a tile on either side of the view.
function roomOf(visible: VisibleArea): number {
  const size = visible.range.to - visible.range.from;
  return Math.min(size, ((MAX_COLUMNS - 2) * columnWidth(visible) - size) / 2);
}

/** Returns the width in CSS pixels or, if they are wider, in those of the device. */
export function pixelsOf(width: number): number {
  return width * Math.min(1, devicePixelRatio);
}

// At least a pixel: a narrower column may lie between two pixels, and its peak would not be drawn.
function columnWidth({ range, width }: VisibleArea): number {
  return 2 ** Math.ceil(Math.log2((range.to - range.from) / Math.max(1, width)) + 1e-9);
}

function rowHeight({ low, high, height }: VisibleArea): number {
  return 2 ** Math.max(0, Math.round(Math.log2((high - low) / Math.max(1, height))));
}

function near(a: number, b: number): boolean {
  return Math.abs(a - b) < b * 1e-6;
}
