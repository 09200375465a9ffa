// Draws the samples of the driver, the plot with its blocks, and the axes.

import { formatBytes, formatByteTicks, formatCount } from '../../base/format_bytes';
import { formatMoment } from '../../base/format_time';
import { byteTicks, decimalTicks, timeTicks } from '../../base/ticks';
import { columnAt, isSampledIn, midpointOf } from '../../data/columns';
import { labelOf } from '../../data/stack_cache';
import { BLOCK_PENDING, NO_ROW, type Axis, type BlockTile, type CurveTile, type LaneMeta, type Layout, type PassingCurve, type PredictedCurve, type SampledSeries, type Series, type StackInfo, type Window } from '../../data/protocol';
import { inkOn, mix } from '../../render/palette';
import type { ColoredQuads } from '../../render/quads';
import { xOf, yOf, type Box, type Renderer, type Viewport } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import type { Range } from '../../state/navigator';
import { GUTTER, type Areas } from './areas';
import type { Coloring } from './coloring';
import type { Picture } from './tiles';

// Series differ by their marks, not by hues, which are for blocks.
export const SERIES_STYLE: Readonly<Record<Exclude<Series, 'live'>, { readonly name: string; readonly mark: 'line' | 'dot' | 'ring' }>> = {
  reserved: { name: 'reserved', mark: 'line' },
  driver_used: { name: 'driver used', mark: 'dot' },
  process_used: { name: 'process used', mark: 'ring' },
};

const POINT = 4; // px, of a sample

/** Draws what the driver says that the device and the process use. It may be far more than the plot shows. */
export function drawSamples(renderer: Renderer, curve: CurveTile, lane: LaneMeta, box: Box, view: Viewport, theme: Theme): void {
  const top = 1.05 * Math.max(1, lane.peak_bytes, ...[...curve.samples.values()].map(({ value }) => highest(value)));
  const scaled = { ...view, low: 0, high: top, box };
  renderer.text(formatBytes(top / 1.05), GUTTER - 8, box.top + 6, theme.muted, 'right');
  renderer.text('0', GUTTER - 8, box.top + box.height - 6, theme.muted, 'right');
  renderer.clip(box);
  for (const [name, samples] of curve.samples) drawPoints(renderer, curve.window, samples, SERIES_STYLE[name].mark === 'ring', scaled, theme);
  if (lane.capacity_bytes !== null && lane.capacity_bytes <= top) {
    const y = yOf(scaled, lane.capacity_bytes);
    renderer.line(box.left, y, box.left + box.width, y, theme.warn, [6, 4]);
  }
  renderer.unclip();
  renderer.line(box.left, box.top + box.height, box.left + box.width, box.top + box.height, theme.line, []);
}

// A sample is a point, because nothing is known between two of them.
function drawPoints(renderer: Renderer, window: Window, { value, ns }: SampledSeries, isRing: boolean, view: Viewport, theme: Theme): void {
  const left = view.box.left - POINT;
  const right = view.box.left + view.box.width + POINT;
  for (let c = 0; c < window.columns; ++c) {
    if (!isSampledIn(ns, c)) continue;
    // On the axis of time its own place, otherwise that of the column.
    const x = xOf(view, window.axis === 'time' ? ns[c]! : midpointOf(window, c));
    if (x < left || x > right) continue;
    const box = { left: Math.round(x) - POINT / 2, top: Math.round(yOf(view, value[c]!)) - POINT / 2, width: POINT, height: POINT };
    if (isRing) renderer.outline(box, theme.fg, 1);
    else renderer.rect(box, theme.fg);
  }
}

function highest(values: Float64Array): number {
  let most = 0;
  for (const value of values) if (value > most) most = value; // false for NaN
  return most;
}

export function drawStacked(renderer: Renderer, picture: Picture, batch: ColoredQuads, lane: LaneMeta, view: Viewport, theme: Theme): void {
  const { curve, blocks } = picture;
  const { from, to } = curve.window;
  const live = curve.series.get('live');
  if (live !== undefined) renderer.area(from, to, live.max, view, theme.rest);
  renderer.quads(batch, view);
  hatchPending(renderer, picture, view, theme);
  if (blocks.query.high < lane.peak_bytes) drawMissing(renderer, blocks.query.high, view, theme);
  drawLimits(renderer, curve, lane.capacity_bytes, view, theme);
}

/**
 * Draws the lines of what is reserved and of the device's memory; if they are above the picture, it
 * says so. Between the blocks and the first is what is reserved and free.
 */
export function drawLimits(renderer: Renderer, { window, series }: Pick<CurveTile, 'window' | 'series'>, capacity: number | null, view: Viewport, theme: Theme): void {
  const above: string[] = [];
  const reserved = series.get('reserved')?.max;
  if (reserved !== undefined) {
    renderer.stepLine(window.from, window.to, reserved, view, theme.fg, []);
    const shown = reserved.subarray(columnAt(window, view.from), columnAt(window, view.to) + 1);
    if (shown.length > 0 && shown.every((bytes) => bytes > view.high)) above.push(`reserved ${formatBytes(highest(shown))}`);
  }
  if (capacity !== null && capacity < view.high) {
    const y = yOf(view, capacity);
    renderer.line(view.box.left, y, view.box.left + view.box.width, y, theme.warn, [6, 4]);
    renderer.text(`capacity ${formatBytes(capacity)}`, view.box.left + 6, y - 8, theme.warn, 'left');
  } else if (capacity !== null) {
    above.push(`capacity ${formatBytes(capacity)}`);
  }
  if (above.length > 0) renderer.text(`${above.join(' and ')}, above`, view.box.left + 6, view.box.top + 8, theme.muted, 'left');
}

const PREDICTED_DASH = [6, 3];
const PASSING_AREA = '24'; // alpha out of 255, so that the blocks below keep their colours

/**
 * Draws the bytes that match the filter, from the bottom up. Many of these blocks may be drawn as
 * sums, or not at the bottom.
 */
export function drawPassing(renderer: Renderer, { query, live }: PassingCurve, view: Viewport, theme: Theme): void {
  renderer.area(query.from, query.to, live, view, `${theme.accent}${PASSING_AREA}`);
  renderer.stepLine(query.from, query.to, live, view, theme.accent, []);
}

/** Draws what would be reserved with other settings. */
export function drawPredicted(renderer: Renderer, { query, reserved }: PredictedCurve, view: Viewport, theme: Theme): void {
  renderer.stepLine(query.from, query.to, reserved, view, theme.accent, PREDICTED_DASH);
}

// Hatches the area above the tile, which is not loaded yet.
function drawMissing(renderer: Renderer, high: number, view: Viewport, theme: Theme): void {
  const y = yOf(view, high);
  if (y > view.box.top) renderer.hatch({ left: view.box.left, top: view.box.top, width: view.box.width, height: y - view.box.top }, theme.line);
}

export function drawAddress(renderer: Renderer, picture: Picture, batch: ColoredQuads, view: Viewport, theme: Theme): void {
  const { box } = view;
  for (const space of picture.blocks.spaces) {
    const [top, bottom] = [yOf(view, space.place + space.size), yOf(view, space.place)];
    if (bottom < box.top || top > box.top + box.height) continue;
    for (const [from, to] of space.lives) {
      const x0 = Math.max(box.left, xOf(view, from));
      const x1 = Math.min(box.left + box.width, to === Infinity ? Infinity : xOf(view, to));
      if (x1 <= x0) continue;
      const part = { left: x0, top, width: x1 - x0, height: bottom - top };
      renderer.rect(part, mix(theme.rest, theme.bg, 0.6));
      if (bottom - top > 5) renderer.hatch(part, theme.rest);
    }
  }
  renderer.quads(batch, view);
  hatchPending(renderer, picture, view, theme);
  for (const space of picture.blocks.spaces) {
    const [top, bottom] = [yOf(view, space.place + space.size), yOf(view, space.place)];
    if (bottom < box.top || top > box.top + box.height || bottom - top < 3) continue;
    renderer.line(box.left, bottom, box.left + box.width, bottom, theme.muted, []);
  }
}

/** Returns how many of their last digits distinguish the addresses; at least 7, at most what the gutter has room for. */
export function telling(addresses: readonly string[]): number {
  let digits = 7;
  while (digits < 10 && new Set(addresses.map((address) => address.slice(-digits))).size < new Set(addresses).size) ++digits;
  return digits;
}

/** Draws the addresses of segments in the gutter if there is room. */
export function drawSpaceNames(renderer: Renderer, picture: Picture, view: Viewport, theme: Theme): void {
  const digits = telling(picture.blocks.spaces.map(({ address }) => address));
  for (const space of picture.blocks.spaces) {
    const middle = yOf(view, space.place + space.size / 2);
    const height = (space.size / (view.high - view.low)) * view.box.height;
    if (height < 13 || middle < view.box.top || middle > view.box.top + view.box.height) continue;
    renderer.text(`…${space.address.slice(-digits)}`, GUTTER - 8, middle, theme.muted, 'right');
  }
}

// Hatches blocks that are freed and wait for other streams, so that they are not marked by colour
// alone.
function hatchPending(renderer: Renderer, { blocks, laidOut }: Picture, view: Viewport, theme: Theme): void {
  const { quads } = laidOut;
  let drawn = 0;
  for (let i = 0; i < quads.count && drawn < 500; ++i) {
    const item = quads.item[i]!;
    if (item >= blocks.flags.length || (blocks.flags[item]! & BLOCK_PENDING) === 0) continue;
    const box = boxOf(view, quads.x0[i]!, quads.x1[i]!, quads.y0[i]!, quads.y1[i]!);
    if (box === null || box.width < 6 || box.height < 6) continue;
    renderer.hatch(box, theme.bg);
    ++drawn;
  }
}

/** Returns the visible part of a rectangle in pixels, or null if there is none. */
export function boxOf(view: Viewport, x0: number, x1: number, y0: number, y1: number): Box | null {
  const { box } = view;
  const left = Math.max(box.left, xOf(view, x0));
  const right = Math.min(box.left + box.width, xOf(view, x1));
  const top = Math.max(box.top, yOf(view, y1));
  const bottom = Math.min(box.top + box.height, yOf(view, y0));
  return right > left && bottom > top ? { left, top, width: right - left, height: bottom - top } : null;
}

const LABELS = 80;

/** Returns the stacks that the label of an item needs. */
export function stacksOf({ stack, forward_stack }: BlockTile, item: number): number[] {
  return [stack[item]!, forward_stack[item]!].filter((id) => id !== 0);
}

/** Draws names in blocks that have room for them. Returns the stacks whose names are needed. */
export function drawLabels(renderer: Renderer, picture: Picture, coloring: Coloring, view: Viewport, stackOf: (stack: number) => StackInfo | null): number[] {
  const { blocks, laidOut } = picture;
  const { quads } = laidOut;
  const wanted: number[] = [];
  let last = -1;
  let labels = 0;
  for (let i = 0; i < quads.count && labels < LABELS; ++i) {
    const item = quads.item[i]!;
    if (item === last || item >= blocks.row.length || blocks.row[item] === NO_ROW) continue;
    // Cheap test first, because most quads have no room.
    if (((quads.y1[i]! - quads.y0[i]!) / (view.high - view.low)) * view.box.height < 14) continue;
    const box = boxOf(view, quads.x0[i]!, quads.x1[i]!, quads.y0[i]!, quads.y1[i]!);
    if (box === null || box.width < 64 || box.height < 14) continue;
    last = item;
    ++labels;
    wanted.push(...stacksOf(blocks, item));
    const size = formatBytes(blocks.size[item]!);
    const ink = inkOn(coloring.colors[coloring.ofItem[item]!]!);
    const name = labelOf(stackOf, blocks.stack[item]!, blocks.forward_stack[item]!) ?? '';
    const text = name !== '' && box.width > (size.length + name.length + 2) * 6.6 ? `${size}  ${name}` : size;
    renderer.text(text, box.left + 5, box.top + box.height / 2, ink, 'left', box.width - 8);
  }
  return wanted;
}

export function drawAxes(renderer: Renderer, axis: Axis, areas: Areas, view: Viewport, theme: Theme): void {
  const { plot, axis: bottom } = areas;
  const ticks = byteTicks(view.low, view.high, Math.max(2, plot.height / 48));
  const words = formatByteTicks(ticks);
  for (const [i, bytes] of ticks.entries()) {
    const y = yOf(view, bytes);
    renderer.text(words[i]!, GUTTER - 8, y, theme.muted, 'right');
    renderer.line(plot.left - 4, y, plot.left, y, theme.muted, []);
  }
  drawPositions(renderer, axis, bottom, view, theme);
}

export function drawPositions(renderer: Renderer, axis: Axis, box: Box, view: Viewport, theme: Theme): void {
  const target = Math.max(2, box.width / 110);
  const ticks = axis === 'time' ? timeTicks(view.from, view.to, target) : decimalTicks(view.from, view.to, target, axis === 'event' ? 1 : 0);
  const step = (ticks[1] ?? view.to) - (ticks[0] ?? view.from);
  for (const position of ticks) {
    const x = xOf(view, position);
    renderer.line(x, box.top, x, box.top + 4, theme.muted, []);
    // Right-aligned at the right edge, where centered text would be cut off.
    const isLast = x > box.left + box.width - 36;
    renderer.text(axisWords(axis, position, step), isLast ? box.left + box.width : x, box.top + 12, theme.muted, isLast ? 'right' : 'center');
  }
}

/** Describes a position. `resolution` is the distance to its neighbours. */
export function axisWords(axis: Axis, position: number, resolution: number): string {
  if (axis === 'time') return formatMoment(position, resolution);
  if (axis === 'event') return formatCount(position);
  const digits = Math.max(0, Math.ceil(-Math.log10(Math.max(resolution, 1e-9))));
  return `step ${position.toFixed(Math.min(6, digits))}`;
}

/** Marks the lane's peak. */
export function drawPeak(renderer: Renderer, layout: Layout, position: number, bytes: number, view: Viewport, theme: Theme): void {
  if (position < view.from || position > view.to || bytes === 0) return;
  const x = xOf(view, position);
  const y = layout === 'address' ? view.box.top + 10 : Math.max(view.box.top + 10, yOf(view, bytes));
  const isLeft = x > view.box.left + view.box.width - 130;
  renderer.line(x, y - 8, x, y + 6, theme.fg, []);
  renderer.triangle(x, y - 8, 4, theme.fg);
  const words = `peak ${formatBytes(bytes)}`;
  const width = words.length * 6.2 + 6;
  // In the layout by address the label is over blocks of any colour.
  if (layout === 'address') renderer.rect({ left: isLeft ? x - 5 - width : x + 5, top: y - 11, width, height: 14 }, theme.bg);
  renderer.text(words, x + (isLeft ? -8 : 8), y - 4, theme.fg, isLeft ? 'right' : 'left');
}

/** Hatches the areas beside the tile, which are on their way. */
export function hatchUnloaded(renderer: Renderer, window: Window, domain: Range, view: Viewport, theme: Theme): void {
  const { box } = view;
  const [x0, x1] = [xOf(view, window.from), xOf(view, window.to)];
  const right = box.left + box.width;
  if (x0 > box.left + 1 && window.from > domain.from) renderer.hatch({ ...box, width: Math.min(box.width, x0 - box.left) }, theme.line);
  if (x1 < right - 1 && window.to < domain.to) renderer.hatch({ ...box, left: Math.max(box.left, x1), width: right - Math.max(box.left, x1) }, theme.line);
}
