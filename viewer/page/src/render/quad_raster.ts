// Paints rectangles into its own pixel buffer. A canvas pays for each rectangle of any size, and
// again when it is shown. Here tens of thousands cost little more than the pixels they cover. The
// picture is identical to the pixel, because both ways take the edges from QuadPixels.

import type { ColoredQuads, Quads } from './quads';
import type { Viewport } from './renderer';

const GAP_FROM = 4; // device pixels; bands of at least that height are separated by one pixel
const NARROW = 24; // pixels; up to that a loop is faster than a call of fill()

/**
 * Maps quads to whole device pixels of a view, so that neighbours meet without a seam. A quad is at
 * least one pixel wide.
 */
export class QuadPixels {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  // The quad placed last. Small integers, which an engine stores without allocating objects.
  x0 = 0;
  x1 = 0;
  y0 = 0;
  y1 = 0;
  private readonly originX: number;
  private readonly originY: number;
  private readonly scaleX: number;
  private readonly scaleY: number;

  constructor(
    private readonly quads: Quads,
    private readonly view: Viewport,
    ratio: number,
  ) {
    const { box } = view;
    this.scaleX = (box.width / (view.to - view.from)) * ratio;
    this.scaleY = (box.height / (view.high - view.low)) * ratio;
    this.originX = box.left * ratio;
    this.originY = (box.top + box.height) * ratio;
    [this.left, this.right] = [Math.floor(this.originX), Math.ceil((box.left + box.width) * ratio)];
    [this.top, this.bottom] = [Math.floor(box.top * ratio), Math.ceil(this.originY)];
  }

  /** Places a quad. Returns false if no part of it is visible. */
  place(quad: number): boolean {
    const { quads, view } = this;
    const [from, to, low, high] = [quads.x0[quad]!, quads.x1[quad]!, quads.y0[quad]!, quads.y1[quad]!];
    if (to <= view.from || from >= view.to || high <= view.low || low >= view.high) return false;
    // These are whole numbers already; `| 0` only makes their type known to the engine.
    this.x0 = Math.max(this.left, Math.round(this.originX + (from - view.from) * this.scaleX)) | 0;
    this.x1 = Math.min(this.right, Math.round(this.originX + (to - view.from) * this.scaleX)) | 0;
    this.y0 = Math.max(this.top, Math.round(this.originY - (high - view.low) * this.scaleY)) | 0;
    this.y1 = Math.min(this.bottom, Math.round(this.originY - (low - view.low) * this.scaleY)) | 0;
    // While zooming out waits for wider columns, some of these lie between two pixels. Of what is in
    // a pixel, the highest is seen then, as in areaRects().
    if (this.x1 === this.x0 && this.x0 < this.right) ++this.x1;
    else if (this.x1 === this.x0) --this.x0;
    if (this.y1 - this.y0 >= GAP_FROM) ++this.y0;
    return this.x1 > this.x0 && this.y1 > this.y0;
  }
}

export class QuadRaster {
  width = 0;
  height = 0;
  private bytes: Uint8ClampedArray<ArrayBuffer> = new Uint8ClampedArray(0);
  private words: Uint32Array<ArrayBuffer> = new Uint32Array(0);

  /** Paints the visible part of the batch; the rest is transparent. */
  paint(batch: ColoredQuads, place: QuadPixels): void {
    this.clear(place.right - place.left, place.bottom - place.top);
    const { begin, colors } = batch;
    const { width, words } = this;
    for (let color = 0; color < colors.length; ++color) {
      const end = begin[color + 1]!;
      if (begin[color] === end) continue;
      const word = wordOf(colors[color]!);
      for (let k = begin[color]!; k < end; ++k) {
        if (!place.place(k)) continue;
        const length = place.x1 - place.x0;
        const last = (place.y1 - place.top) * width;
        for (let at = (place.y0 - place.top) * width + place.x0 - place.left; at < last; at += width) {
          if (length > NARROW) words.fill(word, at, at + length);
          else for (let x = at; x < at + length; ++x) words[x] = word;
        }
      }
    }
  }

  /** The RGBA pixels, `width` x `height`, without a copy. */
  pixels(): Uint8ClampedArray<ArrayBuffer> {
    return this.bytes;
  }

  private clear(width: number, height: number): void {
    if (this.width === width && this.height === height) {
      this.words.fill(0);
      return;
    }
    [this.width, this.height] = [width, height];
    this.bytes = new Uint8ClampedArray(4 * width * height);
    this.words = new Uint32Array(this.bytes.buffer);
  }
}

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

// Returns '#rrggbb' as an opaque pixel in the byte order of memory.
function wordOf(color: string): number {
  const rgb = parseInt(color.slice(1), 16);
  const [red, green, blue] = [rgb >>> 16, (rgb >>> 8) & 255, rgb & 255];
  return (IS_LITTLE_ENDIAN ? (255 << 24) | (blue << 16) | (green << 8) | red : (red << 24) | (green << 16) | (blue << 8) | 255) >>> 0;
}
