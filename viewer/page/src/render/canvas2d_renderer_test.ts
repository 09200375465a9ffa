import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { Canvas2dRenderer } from './canvas2d_renderer';
import type { Viewport } from './renderer';

const strokes: string[] = [];

function canvas(): HTMLCanvasElement {
  const note = (word: string) => (x: number, y: number): void => void strokes.push(`${word} ${x},${y}`);
  const context = {
    setLineDash: () => undefined, beginPath: () => undefined, stroke: () => undefined, moveTo: note('to'), lineTo: note('line'),
    fillRect: (x: number, y: number, width: number, height: number) => void strokes.push(`fill ${x},${y} ${width}x${height}`),
  };
  return { getContext: () => context } as unknown as HTMLCanvasElement;
}

beforeAll(() => void vi.stubGlobal('document', { createElement: canvas }));
afterAll(() => void vi.unstubAllGlobals());

it('draws a line only where values are known, not as 0 elsewhere', () => {
  strokes.length = 0;
  const view: Viewport = { from: 0, to: 6, low: 0, high: 10, box: { left: 0, top: 0, width: 6, height: 10 } };
  new Canvas2dRenderer(canvas(), () => '').stepLine(0, 6, [NaN, NaN, 4, 4, NaN, 7], view, 'red', []);
  expect(strokes).toEqual(['to 2,6', 'line 3,6', 'line 4,6', 'to 5,3', 'line 6,3']);
});

it('draws the visible part of an area, and nothing where values are unknown', () => {
  strokes.length = 0;
  const view: Viewport = { from: 1, to: 5, low: 2, high: 12, box: { left: 10, top: 20, width: 8, height: 20 } };
  new Canvas2dRenderer(canvas(), () => '').area(0, 6, [9, 4, NaN, 1, 30, 9], view, 'red');
  expect(strokes).toEqual(['fill 10,36 2x4', 'fill 16,20 2x20']);
});
