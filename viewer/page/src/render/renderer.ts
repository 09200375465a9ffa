// The drawing interface of views, made for tens of thousands of rectangles. Positions of quads are
// in data space (a Viewport maps it to the canvas), all others in CSS pixels.

import type { ColoredQuads } from './quads';

/** Maps the data [from, to) x [low, high) to the pixels of a box; low is at its bottom. */
export interface Viewport {
  readonly from: number;
  readonly to: number;
  readonly low: number;
  readonly high: number;
  readonly box: Box;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export type Align = 'left' | 'center' | 'right';

export interface Renderer {
  /** Begins a frame by filling everything with `background`. */
  begin(width: number, height: number, background: string): void;
  /** Draws only inside the box until `unclip`. */
  clip(box: Box): void;
  unclip(): void;
  quads(batch: ColoredQuads, view: Viewport): void;
  /**
   * Draws the area between 0 and values that each cover an equal part of [from, to). NaN is a gap.
   */
  area(from: number, to: number, values: ArrayLike<number>, view: Viewport, color: string): void;
  /** Draws such values as a stepped line. */
  stepLine(from: number, to: number, values: ArrayLike<number>, view: Viewport, color: string, dash: readonly number[]): void;
  rect(box: Box, color: string): void;
  outline(box: Box, color: string, width: number): void;
  hatch(box: Box, color: string): void;
  line(x0: number, y0: number, x1: number, y1: number, color: string, dash: readonly number[]): void;
  triangle(x: number, y: number, size: number, color: string): void;
  text(text: string, x: number, y: number, color: string, align: Align, maxWidth?: number): void;
}

export function xOf(view: Viewport, position: number): number {
  return view.box.left + ((position - view.from) / (view.to - view.from)) * view.box.width;
}

export function yOf(view: Viewport, value: number): number {
  return view.box.top + view.box.height - ((value - view.low) / (view.high - view.low)) * view.box.height;
}

export function positionAt(view: Viewport, x: number): number {
  return view.from + ((x - view.box.left) / view.box.width) * (view.to - view.from);
}

export function valueAt(view: Viewport, y: number): number {
  return view.low + ((view.box.top + view.box.height - y) / view.box.height) * (view.high - view.low);
}

export function isInside(box: Box, x: number, y: number): boolean {
  return x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height;
}
