// Draws one lane: the bytes that are live, and important moments, in positions of the common axis.

import { formatByteTicks } from '../../base/format_bytes';
import { byteTicks } from '../../base/ticks';
import type { CurveTile, FileMeta } from '../../data/protocol';
import { mix } from '../../render/palette';
import { xOf, yOf, type Box, type Renderer, type Viewport } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import { domainOf } from '../../state/navigator';
import { drawInstantSigns, instantsOf, type Instant } from '../timeline/draw_tracks';
import type { LaneAxis } from './lane_axis';

export const GUTTER = 64; // px to the left, for the labels of the bytes
export const MARGIN = 10; // px to the right, for signs at the end
const SIGNS = 14; // px above the bytes, for signs of moments
const GAP = 8; // px; steps and marks are drawn if they are at least this far apart on average

/** Returns where bytes are drawn on a canvas. */
export function plotBox(width: number, height: number): Box {
  return { left: GUTTER, top: SIGNS, width: Math.max(1, width - GUTTER - MARGIN), height: Math.max(1, height - SIGNS - 6) };
}

export interface DrawnLane {
  readonly file: FileMeta;
  readonly axis: LaneAxis;
  readonly shift: number;
  readonly tile: CurveTile | null;
  readonly isSelected: boolean;
}

export function drawLane(renderer: Renderer, { file, axis, shift, tile, isSelected }: DrawnLane, view: Viewport, theme: Theme): void {
  const { box } = view;
  drawUnrecorded(renderer, domainOf(file, axis.axis), shift, view, theme);
  const ticks = byteTicks(view.low, view.high, Math.max(1, box.height / 28));
  const words = formatByteTicks(ticks);
  ticks.forEach((bytes, i) => {
    const y = yOf(view, bytes);
    renderer.line(box.left, y, box.left + box.width, y, theme.line, []);
    renderer.text(words[i]!, GUTTER - 6, y, theme.muted, 'right');
  });
  const signs = { ...box, top: box.top - SIGNS, height: box.height + SIGNS };
  renderer.clip({ ...signs, left: box.left - 6, width: box.width + 12 });
  const live = tile?.series.get('live');
  if (tile !== null && live !== undefined) {
    const { from, to } = tile.window;
    renderer.area(from + shift, to + shift, live.max, view, mix(theme.accent, theme.bg, isSelected ? 0.1 : 0.35));
  }
  if (axis.axis === 'time') drawSteps(renderer, file.steps.begin_ns, shift, view, theme);
  drawInstantSigns(renderer, instantsIn(file, axis, shift, view), signs, view, theme);
  renderer.unclip();
}

// Many marks, such as one for each step, would hide what is more important.
function instantsIn(file: FileMeta, { axis }: LaneAxis, shift: number, view: Viewport): Instant[] {
  const placed = instantsOf(file, axis).map((instant) => ({ ...instant, position: instant.position + shift }));
  const seen = placed.filter(({ position }) => position >= view.from && position <= view.to);
  const marks = seen.filter(({ kind }) => kind === 'mark').length;
  return marks * GAP > view.box.width ? seen.filter(({ kind }) => kind !== 'mark') : seen;
}

// What precedes and follows the recording differs from memory that is not used.
function drawUnrecorded(renderer: Renderer, own: { readonly from: number; readonly to: number }, shift: number, view: Viewport, theme: Theme): void {
  const { box } = view;
  const right = box.left + box.width;
  const [begin, end] = [own.from, own.to].map((position) => Math.min(right, Math.max(box.left, xOf(view, position + shift)))) as [number, number];
  for (const [x0, x1] of [[box.left, begin], [end, right]] as const) {
    if (x1 > x0) renderer.hatch({ left: x0, top: box.top, width: x1 - x0, height: box.height }, theme.line);
  }
}

function drawSteps(renderer: Renderer, begins: readonly number[], shift: number, view: Viewport, theme: Theme): void {
  const seen = begins.map((ns) => xOf(view, ns + shift)).filter((x) => x >= view.box.left && x <= view.box.left + view.box.width);
  if (seen.length * GAP > view.box.width) return;
  for (const x of seen) renderer.line(x, view.box.top, x, view.box.top + view.box.height, theme.muted, [1, 3]);
}
