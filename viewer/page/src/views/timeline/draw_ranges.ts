// Draws the ranges that are selected, dragged out and compared.

import { xOf, yOf, type Renderer, type Viewport } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import type { State } from '../../state/state';

/** Fades what is not in a range. `ys`: the top and the bottom of a part of the plot. */
export function outlineRange(overlay: Renderer, theme: Theme, x0: number, x1: number, view: Viewport, ys: readonly [number, number] | null): void {
  const { left, top, width, height } = view.box;
  const outside = `${theme.bg}a6`;
  const [begin, end] = [Math.max(x0, left), Math.min(x1, left + width)];
  if (begin > left) overlay.rect({ left, top, width: begin - left, height }, outside);
  if (end < left + width) overlay.rect({ left: end, top, width: left + width - end, height }, outside);
  if (ys === null) {
    overlay.line(x0, top, x0, top + height, theme.accent, []);
    overlay.line(x1, top, x1, top + height, theme.accent, []);
    return;
  }
  const [high, low] = [Math.max(ys[0], top), Math.min(ys[1], top + height)];
  if (high > top) overlay.rect({ left: begin, top, width: end - begin, height: high - top }, outside);
  if (low < top + height) overlay.rect({ left: begin, top: low, width: end - begin, height: top + height - low }, outside);
  overlay.outline({ left: x0, top: ys[0], width: Math.max(1, x1 - x0), height: ys[1] - ys[0] }, theme.accent, 1.5);
}

/** Outlines range A of the breakdown, and names it and the selected range, B. */
export function drawComparedRanges(overlay: Renderer, theme: Theme, state: State, view: Viewport, positionOf: (event: number) => number | null): void {
  const { rangeA, selection } = state;
  if (rangeA === null || state.breakdown.of !== 'ranges') return;
  const { top, height } = view.box;
  const name = (x: number, letter: string, color: string): void => {
    overlay.rect({ left: x, top, width: 14, height: 15 }, color);
    overlay.text(letter, x + 3, top + 8, theme.bg, 'left');
  };
  const [begin, end] = [positionOf(rangeA.from), positionOf(rangeA.to)];
  if (begin !== null && end !== null) {
    const [x0, x1] = [xOf(view, begin), xOf(view, end)];
    const { box } = rangeA;
    if (box !== null && box.axis === state.axis && box.layout === state.layout) {
      const [high, low] = [yOf(view, box.high), yOf(view, box.low)];
      overlay.outline({ left: x0, top: high, width: Math.max(1, x1 - x0), height: low - high }, theme.warn, 1.5);
    }
    for (const x of [x0, x1]) overlay.line(x, top, x, top + height, theme.warn, []);
    name(x0, 'A', theme.warn);
  }
  const beginOfB = selection.kind === 'range' ? positionOf(selection.from) : null;
  if (beginOfB !== null) name(xOf(view, beginOfB), 'B', theme.accent);
}
