import { describe, expect, it } from 'vitest';
import { QuadPixels } from '../../render/quad_raster';
import { QuadWriter } from '../../render/quads';
import { Random } from '../../testing/random';
import { forEachSeed } from '../../testing/seeds';
import { covers, wantedTile, type VisibleArea } from './wanted';

const VISIBLE: VisibleArea = { range: { from: 4000, to: 5000 }, domain: { from: 0, to: 1e6 }, width: 1000, low: 0, high: 1e9, top: 1e9, height: 500 };
const moved = (by: number): VisibleArea => ({ ...VISIBLE, range: { from: 4000 + by, to: 5000 + by } });

describe('wanted tile', () => {
  it('is three screens wide and covers the view', () => {
    const tile = wantedTile(VISIBLE);
    expect([tile.from, tile.to, tile.columns]).toEqual([3000, 6000, 1500]);
    expect(covers(tile, VISIBLE)).toBe(true);
  });
  it('stays valid while the view pans inside it, and no longer', () => {
    const tile = wantedTile(VISIBLE);
    expect(covers(tile, moved(700))).toBe(true);
    expect(covers(tile, moved(-700))).toBe(true);
    expect(covers(tile, moved(1100))).toBe(false);
  });
  it('stays valid for a small zoom, not for a large one', () => {
    const tile = wantedTile(VISIBLE);
    expect(covers(tile, { ...VISIBLE, range: { from: 3950, to: 5050 } })).toBe(true);
    expect(covers(tile, { ...VISIBLE, range: { from: 4400, to: 4600 } })).toBe(false);
  });
  it('has its own rows when zoomed in bytes', () => {
    const near = { ...VISIBLE, low: 4e8, high: 5e8 };
    const tile = wantedTile(near);
    expect(covers(wantedTile(VISIBLE), near)).toBe(false);
    expect(tile.low).toBeGreaterThan(0);
    expect(covers(tile, { ...near, low: 3.5e8, high: 4.5e8 })).toBe(true);
  });
  it('has only columns with pixels of their own, at any size and zoom, so that no peak is lost', () => {
    forEachSeed([1, 2, 3], (seed) => {
      const random = new Random(seed);
      for (let round = 0; round < 40; ++round) {
        const [width, ratio] = [200 + random.below(2000), 1 + random.below(5) / 4];
        const from = random.next() * 1e5;
        const to = from + 2 ** (1 + 15 * random.next());
        const tile = wantedTile({ ...VISIBLE, range: { from, to }, width });
        const size = (tile.to - tile.from) / tile.columns;
        const writer = new QuadWriter();
        for (let i = 0; i < tile.columns; ++i) writer.add(i, tile.from + i * size, tile.from + (i + 1) * size, 0, 1);
        const box = { left: random.below(300) / 4, top: 0, width, height: 100 };
        const place = new QuadPixels(writer.finish(), { from, to, low: 0, high: 1, box }, ratio);
        let pixel = -1;
        for (let i = 0; i < tile.columns; ++i) {
          const isInside = tile.from + i * size >= from && tile.from + (i + 1) * size <= to;
          if (!isInside) continue;
          expect(place.place(i), `${round}: column ${i}`).toBe(true);
          expect(place.x0, `${round}: column ${i}`).toBeGreaterThan(pixel);
          pixel = place.x0;
        }
      }
    });
  });
  it('always covers the view it was computed for, within the limits of a query, with columns of one to two pixels', () => {
    forEachSeed([1], (seed) => {
      const random = new Random(seed);
      for (let round = 0; round < 2000; ++round) {
        const end = 10 ** (1 + random.below(15));
        const size = Math.max(4, end * 10 ** (-6 * random.next()));
        const from = random.next() * Math.max(0, end - size);
        const top = 2 ** (10 + random.below(30));
        const low = random.next() * top * 0.9;
        const visible = { range: { from, to: Math.min(end, from + size) }, domain: { from: 0, to: end }, width: 200 + random.below(4000), low, high: low + (top - low) * random.next() + 64, top, height: 50 + random.below(1500) };
        const tile = wantedTile(visible);
        expect(tile.columns).toBeLessThanOrEqual(8192);
        const pixels = ((tile.to - tile.from) / tile.columns / (visible.range.to - from)) * visible.width;
        expect(pixels).toBeGreaterThan(1);
        expect(pixels).toBeLessThan(2.001);
        expect(covers(tile, visible)).toBe(true);
      }
    });
  });
});
