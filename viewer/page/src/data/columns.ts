// The positions of the columns of a window on its axis. If an event is exactly at a midpoint,
// rounding decides which side it is on. So positions are computed in one way, here and in
// viewer/index/tiles.h; otherwise the blocks selected would not match the layout.

import type { Window } from './protocol';

export function widthOf({ from, to, columns }: Window): number {
  return (to - from) / columns;
}

/** Returns the position at which a column begins. */
export function edgeOf(window: Window, column: number): number {
  return window.from + column * widthOf(window);
}

/** Returns the midpoint of a column, where it is sampled. */
export function midpointOf(window: Window, column: number): number {
  return window.from + (column + 0.5) * widthOf(window);
}

/**
 * Returns the first column whose midpoint is not before a position, or `columns` if there is none.
 * A block that lives in [start, end) has the columns from that of `start` to before that of `end`.
 */
export function firstColumn(window: Window, position: number): number {
  const { from, columns } = window;
  let column = Math.min(columns, Math.max(0, Math.ceil((position - from) / widthOf(window) - 0.5)));
  // Division rounds, so the midpoints themselves decide.
  while (column > 0 && midpointOf(window, column - 1) >= position) column--;
  while (column < columns && midpointOf(window, column) < position) column++;
  return column;
}
