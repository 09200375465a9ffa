// Where the columns of a window lie on its axis. Rounding decides on which side of a middle an event lies that
// falls on it, so there is one way to work out a place, here and in viewer/index/tiles.h: else what is selected
// would not be what is laid out.

import type { Window } from './protocol';

export function widthOf({ from, to, columns }: Window): number {
  return (to - from) / columns;
}

/** Where a column begins. */
export function edgeOf(window: Window, column: number): number {
  return window.from + column * widthOf(window);
}

/** Where a column is sampled. */
export function middleOf(window: Window, column: number): number {
  return window.from + (column + 0.5) * widthOf(window);
}

/**
 * The first column whose middle is not before a position; `columns` where none is. What lives in [start, end)
 * has the columns from that of `start` to before that of `end`.
 */
export function firstColumn(window: Window, position: number): number {
  const { from, columns } = window;
  let column = Math.min(columns, Math.max(0, Math.ceil((position - from) / widthOf(window) - 0.5)));
  // Division rounds: the middles themselves decide.
  while (column > 0 && middleOf(window, column - 1) >= position) column--;
  while (column < columns && middleOf(window, column) < position) column++;
  return column;
}
