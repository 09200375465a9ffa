import { expect, it } from 'vitest';
import { Random } from '../testing/random';
import { forEachSeed } from '../testing/seeds';
import { QuadPixels, QuadRaster } from './quad_raster';
import { QuadWriter, sortByColor, type ColoredQuads } from './quads';
import type { Viewport } from './renderer';

const COLORS = ['#112233', '#445566', '#a0b0c0'];

function randomBatch(random: Random, count: number): ColoredQuads {
  const writer = new QuadWriter();
  for (let i = 0; i < count; ++i) {
    const [x, y] = [random.next() * 1200 - 100, random.next() * 1200 - 100];
    writer.add(i, x, x + random.next() * 90, y, y + random.next() * 40);
  }
  return sortByColor(writer.finish(), COLORS, Array.from({ length: count }, (_, i) => i % COLORS.length));
}

// What a canvas would show: drawn rectangle by rectangle and pixel by pixel.
function painted(batch: ColoredQuads, place: QuadPixels): (string | null)[] {
  const width = place.right - place.left;
  const pixels = new Array<string | null>(width * (place.bottom - place.top)).fill(null);
  for (const [color, name] of COLORS.entries()) {
    for (let i = batch.begin[color]!; i < batch.begin[color + 1]!; ++i) {
      if (!place.place(i)) continue;
      for (let y = place.y0; y < place.y1; ++y) for (let x = place.x0; x < place.x1; ++x) pixels[(y - place.top) * width + x - place.left] = name;
    }
  }
  return pixels;
}

function colorsOf(raster: QuadRaster): (string | null)[] {
  const bytes = raster.pixels();
  const hex = (at: number): string => bytes[at]!.toString(16).padStart(2, '0');
  return Array.from({ length: bytes.length / 4 }, (_, i) => {
    if (bytes[4 * i + 3] === 0) return null;
    expect(bytes[4 * i + 3]).toBe(255);
    return `#${hex(4 * i)}${hex(4 * i + 1)}${hex(4 * i + 2)}`;
  });
}

it('paints the same as single rectangles', () => {
  forEachSeed([1], (seed) => {
    const random = new Random(seed);
    const raster = new QuadRaster();
    for (let i = 0; i < 20; ++i) {
      const batch = randomBatch(random, 300);
      const [from, low] = [random.next() * 800, random.next() * 800];
      const box = { left: random.next() * 60, top: random.next() * 30, width: 100 + random.next() * 200, height: 80 };
      const view: Viewport = { from, to: from + 10 + random.next() * 900, low, high: low + 10 + random.next() * 900, box };
      const place = new QuadPixels(batch.quads, view, 1 + random.next());
      raster.paint(batch, place);
      expect(colorsOf(raster)).toEqual(painted(batch, place));
    }
  });
});

it('keeps one pixel between bands that are high enough', () => {
  const writer = new QuadWriter();
  writer.add(0, 0, 10, 0, 5);
  writer.add(1, 0, 10, 5, 8);
  const batch = sortByColor(writer.finish(), COLORS, [0, 1]);
  const place = new QuadPixels(batch.quads, { from: 0, to: 10, low: 0, high: 10, box: { left: 0, top: 0, width: 10, height: 10 } }, 1);
  expect([place.place(0), place.y0, place.y1]).toEqual([true, 6, 10]);
  expect([place.place(1), place.y0, place.y1]).toEqual([true, 2, 5]);
});

it('draws quads that are narrower than a pixel, also at the edges', () => {
  const writer = new QuadWriter();
  for (const x of [0, 4.8, 9.8]) writer.add(0, x, x + 0.2, 0, 10);
  const place = new QuadPixels(writer.finish(), { from: 0, to: 10, low: 0, high: 10, box: { left: 0, top: 0, width: 10, height: 10 } }, 1);
  const pixels = [0, 1, 2].map((quad) => (place.place(quad) ? [place.x0, place.x1] : null));
  expect(pixels).toEqual([[0, 1], [5, 6], [9, 10]]);
});
