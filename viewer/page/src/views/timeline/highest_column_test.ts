import { describe, expect, it } from 'vitest';
import type { Window } from '../../data/protocol';
import type { Viewport } from '../../render/renderer';
import { highestColumnAt } from './highest_column';

const window: Window = { file: 0, lane: 0, axis: 'event', from: 0, to: 16, columns: 16 };
const heights = Array.from({ length: 16 }, () => 10);
heights[5] = 40;
heights[15] = 50;

/** Columns of `pixels` px each. */
function viewOf(pixels: number, from = 0, to = 16): Viewport {
  return { from, to, low: 0, high: 100, box: { left: 30, top: 0, width: (to - from) * pixels, height: 100 } };
}

describe('the column under the pointer', () => {
  it('is that of its pixel if it is high enough', () => {
    expect(highestColumnAt(window, heights, viewOf(10), 30 + 57, 35)).toBe(5.5);
    expect(highestColumnAt(window, heights, viewOf(10), 30 + 27, 5)).toBe(2.5);
  });

  it('is the highest one of a pixel that shows several', () => {
    for (const x of [32, 32.4, 32.9]) expect(highestColumnAt(window, heights, viewOf(0.5), x, 5)).toBe(5.5);
  });

  it('is a near one above its own', () => {
    for (const x of [37, 38, 39, 42, 44]) expect(highestColumnAt(window, heights, viewOf(2), x, 35)).toBe(5.5);
    for (const x of [36, 45]) expect(highestColumnAt(window, heights, viewOf(2), x, 35)).toBeNull();
  });

  it('is the last one, if that is narrower than a pixel, at the last pixel of the plot', () => {
    const view = viewOf(0.7);
    const last = Math.ceil(view.box.left + view.box.width) - 1;
    expect(highestColumnAt(window, heights, view, last, 45)).toBe(15.5);
  });

  it('is never out of sight', () => {
    const view = viewOf(2, 0, 15.25);
    expect(highestColumnAt(window, heights, view, 60, 45)).toBe((15 + 15.25) / 2);
    expect(highestColumnAt(window, heights, viewOf(2, 0, 15), 59, 45)).toBeNull();
  });

  it('is none where nothing is known', () => {
    expect(highestColumnAt(window, Float64Array.from(heights, (height, c) => (c === 15 ? NaN : height)), viewOf(0.5), 37, 5)).toBe(14.5);
    expect(highestColumnAt(window, heights.map(() => NaN), viewOf(2), 40, 0)).toBeNull();
  });
});
