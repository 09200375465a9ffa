// A Renderer on Canvas 2D. Edges of quads are at whole device pixels, so that neighbours meet
// without a seam and rectangles need no smoothing.

import { areaRects } from './area_rects';
import { QuadPixels, QuadRaster } from './quad_raster';
import type { ColoredQuads } from './quads';
import { xOf, yOf, type Align, type Box, type Renderer, type Viewport } from './renderer';

const MANY = 4000; // quads in a view from which on they are painted here and drawn as one image

export class Canvas2dRenderer implements Renderer {
  private readonly context: CanvasRenderingContext2D;
  private ratio = 1;
  private readonly hatches = new Map<string, CanvasPattern>();
  private readonly raster = new QuadRaster();
  private readonly layer: CanvasRenderingContext2D;
  private image: ImageData | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly font: () => string,
  ) {
    this.context = contextOf(canvas, false);
    // willReadFrequently keeps this canvas in main memory, so that its pixels need not be fetched
    // from a graphics card.
    this.layer = contextOf(document.createElement('canvas'), true);
  }

  begin(width: number, height: number, background: string): void {
    this.ratio = devicePixelRatio;
    const [w, h] = [Math.max(1, Math.round(width * this.ratio)), Math.max(1, Math.round(height * this.ratio))];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    const { context } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, w, h);
    if (background !== '') {
      context.fillStyle = background;
      context.fillRect(0, 0, w, h);
    }
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.font = this.font();
    context.textBaseline = 'middle';
  }

  clip({ left, top, width, height }: Box): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(left, top, width, height);
    this.context.clip();
  }

  unclip(): void {
    this.context.restore();
  }

  quads(batch: ColoredQuads, view: Viewport): void {
    const { context, ratio } = this;
    const place = new QuadPixels(batch.quads, view, ratio);
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (hasMany(batch, view)) this.paintQuads(batch, place);
    else this.fillQuads(batch, place);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  private fillQuads(batch: ColoredQuads, place: QuadPixels): void {
    const { context } = this;
    const { colors, begin } = batch;
    for (let color = 0; color < colors.length; ++color) {
      const end = begin[color + 1]!;
      if (begin[color] === end) continue;
      context.fillStyle = colors[color]!;
      for (let k = begin[color]!; k < end; ++k) {
        if (place.place(k)) context.fillRect(place.x0, place.y0, place.x1 - place.x0, place.y1 - place.y0);
      }
    }
  }

  private paintQuads(batch: ColoredQuads, place: QuadPixels): void {
    const { raster, layer } = this;
    raster.paint(batch, place);
    const { width, height } = raster;
    if (this.image?.data !== raster.pixels()) {
      this.image = new ImageData(raster.pixels(), width, height);
      [layer.canvas.width, layer.canvas.height] = [width, height];
    }
    layer.putImageData(this.image, 0, 0);
    // Drawn over the existing content. putImageData on the visible canvas would replace it.
    this.context.drawImage(layer.canvas, place.left, place.top);
  }

  area(from: number, to: number, values: ArrayLike<number>, view: Viewport, color: string): void {
    const { context } = this;
    const { box } = view;
    const width = (to - from) / values.length;
    const [first, last] = shownColumns(from, width, values.length, view);
    const ground = this.snap(Math.min(box.top + box.height, yOf(view, 0)));
    const highest = ground - this.snap(box.top);
    const edges = new Float64Array(last - first + 1);
    const heights = new Float64Array(last - first);
    for (let i = 0; i < edges.length; ++i) edges[i] = this.snap(xOf(view, from + (first + i) * width));
    for (let i = 0; i < heights.length; ++i) heights[i] = Math.min(highest, ground - this.snap(yOf(view, values[first + i]!)));
    context.fillStyle = color;
    areaRects(edges, heights, (x0, x1, low, high) => context.fillRect(x0, ground - high, x1 - x0, high - low));
  }

  stepLine(from: number, to: number, values: ArrayLike<number>, view: Viewport, color: string, dash: readonly number[]): void {
    const { context } = this;
    const width = (to - from) / values.length;
    const [first, last] = shownColumns(from, width, values.length, view);
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.setLineDash([...dash]);
    context.beginPath();
    let isDown = false;
    for (let c = first; c < last; ++c) {
      const value = values[c]!;
      if (Number.isNaN(value)) {
        isDown = false;
        continue;
      }
      const y = yOf(view, value);
      const x = xOf(view, from + c * width);
      if (isDown) context.lineTo(x, y);
      else context.moveTo(x, y);
      if (value !== values[c + 1]) context.lineTo(xOf(view, from + (c + 1) * width), y);
      isDown = true;
    }
    context.stroke();
    context.setLineDash([]);
  }

  rect({ left, top, width, height }: Box, color: string): void {
    const [x0, y0] = [this.snap(left), this.snap(top)];
    this.context.fillStyle = color;
    this.context.fillRect(x0, y0, Math.max(1 / this.ratio, this.snap(left + width) - x0), Math.max(1 / this.ratio, this.snap(top + height) - y0));
  }

  outline({ left, top, width, height }: Box, color: string, lineWidth: number): void {
    this.context.strokeStyle = color;
    this.context.lineWidth = lineWidth;
    this.context.strokeRect(left, top, width, height);
  }

  hatch(box: Box, color: string): void {
    this.context.fillStyle = this.hatchOf(color);
    this.context.fillRect(box.left, box.top, box.width, box.height);
  }

  line(x0: number, y0: number, x1: number, y1: number, color: string, dash: readonly number[]): void {
    const { context } = this;
    // The center of a pixel, so that the line is one pixel wide and not two half pixels.
    const half = 0.5 / this.ratio;
    context.strokeStyle = color;
    context.lineWidth = 1;
    context.setLineDash([...dash]);
    context.beginPath();
    context.moveTo(this.snap(x0) + half, this.snap(y0) + half);
    context.lineTo(this.snap(x1) + half, this.snap(y1) + half);
    context.stroke();
    context.setLineDash([]);
  }

  triangle(x: number, y: number, size: number, color: string): void {
    const { context } = this;
    context.fillStyle = color;
    context.beginPath();
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y - size);
    context.lineTo(x, y + size);
    context.fill();
  }

  text(text: string, x: number, y: number, color: string, align: Align, maxWidth?: number): void {
    const { context } = this;
    if (maxWidth !== undefined && context.measureText(text).width > maxWidth) return;
    context.fillStyle = color;
    context.textAlign = align;
    context.fillText(text, x, y);
  }

  private snap(pixels: number): number {
    return Math.round(pixels * this.ratio) / this.ratio;
  }

  private hatchOf(color: string): CanvasPattern | string {
    const known = this.hatches.get(color);
    if (known !== undefined) return known;
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const context = tile.getContext('2d');
    const pattern = context === null ? null : this.context.createPattern(tile, 'repeat');
    if (context === null || pattern === null) return color;
    context.strokeStyle = color;
    for (const shift of [-6, 0, 6]) {
      context.moveTo(shift - 1, 7);
      context.lineTo(shift + 7, -1);
    }
    context.stroke();
    const drawn = this.context.createPattern(tile, 'repeat') ?? pattern;
    this.hatches.set(color, drawn);
    return drawn;
  }
}

function contextOf(canvas: HTMLCanvasElement, willReadFrequently: boolean): CanvasRenderingContext2D {
  const context = canvas.getContext('2d', { alpha: true, willReadFrequently });
  if (context === null) throw new Error('This browser cannot draw on a canvas.');
  return context;
}

function hasMany({ quads }: ColoredQuads, view: Viewport): boolean {
  if (quads.count < MANY) return false;
  let seen = 0;
  for (let i = 0; i < quads.count && seen < MANY; ++i) {
    if (quads.x1[i]! > view.from && quads.x0[i]! < view.to && quads.y1[i]! > view.low && quads.y0[i]! < view.high) ++seen;
  }
  return seen >= MANY;
}

function shownColumns(from: number, width: number, columns: number, view: Viewport): readonly [number, number] {
  const first = Math.floor((view.from - from) / width);
  const last = Math.ceil((view.to - from) / width);
  const begin = Math.min(columns, Math.max(0, first));
  return [begin, Math.min(columns, Math.max(begin, last))];
}
