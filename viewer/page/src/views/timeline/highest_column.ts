// The column that is meant by a pointer over the stacked picture.

import { columnAt, edgeOf } from '../../data/columns';
import type { Window } from '../../data/protocol';
import { positionAt, type Viewport } from '../../render/renderer';

const NEAR = [0, 1, -1, 2, -2, 3, -3]; // px

/**
 * Returns the middle of the visible part of a column that reaches higher than `value`: of the highest
 * one in the pointer's pixel, because columns may be narrower than pixels; otherwise of one a few
 * pixels away, because a peak may be a single column. Null if there is none. `heights` has one value
 * for each column of `window`; NaN is unknown.
 */
export function highestColumnAt(window: Window, heights: ArrayLike<number>, view: Viewport, x: number, value: number): number | null {
  for (const by of NEAR) {
    const pixel = Math.floor(x) + by;
    const from = Math.max(view.from, window.from, positionAt(view, pixel));
    const to = Math.min(view.to, window.to, positionAt(view, pixel + 1));
    if (from >= to) continue;
    let best: number | null = null;
    for (let c = columnAt(window, from); edgeOf(window, c) < to; ++c) if (heights[c]! > (best === null ? value : heights[best]!)) best = c;
    if (best !== null) return (Math.max(view.from, edgeOf(window, best)) + Math.min(view.to, edgeOf(window, best + 1))) / 2;
  }
  return null;
}
