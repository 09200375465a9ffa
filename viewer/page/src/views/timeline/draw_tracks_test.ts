// Tests which instants draw lines through the plot.

import { expect, it } from 'vitest';
import type { Renderer } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import { recordedFile } from '../../testing/recordings';
import { areasOf } from './areas';
import { drawInstants, type Instant } from './draw_tracks';

const areas = areasOf(await recordedFile(), 1000, 600);
const view = { from: 0, to: 1000, low: 0, high: 1, box: areas.plot };
const theme = { scheme: 'light' } as Theme;

function linesOf(instants: readonly Instant[]): number {
  let lines = 0;
  const ignore = (): void => undefined;
  const renderer: Renderer = {
    begin: ignore, clip: ignore, unclip: ignore, quads: ignore, area: ignore, stepLine: ignore, rect: ignore, outline: ignore, hatch: ignore,
    line: () => { ++lines; }, triangle: ignore, text: ignore,
  };
  drawInstants(renderer, instants, areas, view, theme);
  return lines;
}

function spread(kind: Instant['kind'], count: number, from = 0): Instant[] {
  return Array.from({ length: count }, (_, i) => ({ kind, name: '', event: 0, ns: 0, position: from + (i * 1000) / count }));
}

it('each mark draws a line, unless they would hide the picture', () => {
  expect(linesOf(spread('mark', 20))).toBe(20);
  expect(linesOf(spread('mark', 200))).toBe(0);
});

it('marks outside of the window do not count', () => expect(linesOf([...spread('mark', 20), ...spread('mark', 1000, 2000)])).toBe(20));

it('an out of memory always draws a line', () => expect(linesOf([...spread('mark', 200), ...spread('oom', 3)])).toBe(3));
