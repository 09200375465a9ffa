// Tests what the tracks show: which instants draw lines through the plot, which steps are numbered.

import { expect, it } from 'vitest';
import type { FileMeta } from '../../data/protocol';
import type { Renderer } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import { recordedFile } from '../../testing/recordings';
import { areasOf } from './areas';
import { drawInstants, drawTracks, instantsOf, type Instant } from './draw_tracks';

const file = await recordedFile();
const areas = areasOf(file, file.lanes[0]!, 1000, 600);
const view = { from: 0, to: 1000, low: 0, high: 1, box: areas.plot };
const theme = { scheme: 'light' } as Theme;

function rendererWith(of: Partial<Renderer>): Renderer {
  const ignore = (): void => undefined;
  return {
    begin: ignore, clip: ignore, unclip: ignore, quads: ignore, area: ignore, stepLine: ignore, rect: ignore, outline: ignore, hatch: ignore,
    line: ignore, triangle: ignore, text: ignore, ...of,
  };
}

function linesOf(instants: readonly Instant[]): number {
  let lines = 0;
  drawInstants(rendererWith({ line: () => { ++lines; } }), instants, areas, view, theme);
  return lines;
}

/** Returns the numbers of steps that are drawn in a window on the axis of steps. */
function numbersOf(steps: number, from: number, to: number): number[] {
  const numbers: number[] = [];
  const at = Array.from({ length: steps }, (_, i) => i);
  const all: FileMeta = { ...file, phases: [], ranges: [], ooms: [], steps: { source: 'marks', inferred: false, begin: at, end: at, begin_ns: at, end_ns: at } };
  const renderer = rendererWith({
    text: (text) => {
      if (/^\d+$/.test(text)) numbers.push(Number(text));
    },
  });
  drawTracks(renderer, all, 'step', areas, { ...view, from, to }, theme);
  return numbers;
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

it('each step has its number if all fit', () => expect(numbersOf(12, 0, 14)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1)));

it('only every tenth step has a number if they are narrow, and every number is whole', () => {
  expect(numbersOf(120, 0, 130)).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120]);
  expect(numbersOf(5000, 0, 5002)).toEqual([1000, 2000, 3000, 4000]);
});

it('a step that is cut at the edge has a number only if that fits', () => {
  expect(numbersOf(120, 99.999, 101.5)).toEqual([100, 101]);
  expect(numbersOf(120, 100.999, 101.5)).toEqual([101]);
});

it('a note is drawn with its text, and an out of memory whole beside it', () => {
  const drawn: (readonly [string, number | undefined])[] = [];
  const renderer = rendererWith({ text: (text, _x, _y, _color, _align, maxWidth) => { drawn.push([text, maxWidth]); } });
  const [note] = instantsOf({ ...file, snapshots: [], marks: [], losses: [], retries: [], ooms: [] }, 'event', [{ file: 0, event: 100, ns: 5, text: 'here' }]);
  drawInstants(renderer, [note!, ...spread('oom', 1, 900)], areas, view, theme);
  expect(drawn.slice(1)).toEqual([['here', expect.any(Number)], ['OOM', undefined]]);
});
