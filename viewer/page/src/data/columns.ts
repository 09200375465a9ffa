// The positions of the columns of a window on its axis, as in viewer/index/tiles.h.

import type { Window } from './protocol';

export type Columns = Pick<Window, 'from' | 'to' | 'columns'>;

export function widthOf({ from, to, columns }: Columns): number {
  return (to - from) / columns;
}

/** Returns the position at which a column begins. */
export function edgeOf(window: Columns, column: number): number {
  return window.from + column * widthOf(window);
}

/** Returns the column that contains a position, the nearest one if none does. */
export function columnAt(window: Columns, position: number): number {
  return Math.min(window.columns - 1, Math.max(0, Math.floor((position - window.from) / widthOf(window))));
}

/** Returns the midpoint of a column. */
export function midpointOf(window: Columns, column: number): number {
  return window.from + (column + 0.5) * widthOf(window);
}

/**
 * Returns whether the last known sample of a column was taken in it, by the times of the samples.
 * The first column is off screen.
 */
export function isSampledIn(ns: Float64Array, column: number): boolean {
  return !Number.isNaN(ns[column]!) && (column === 0 || ns[column] !== ns[column - 1]);
}
