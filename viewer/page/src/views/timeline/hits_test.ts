import { describe, expect, it } from 'vitest';
import { QuadWriter } from '../../render/quads';
import { HitTest } from './hits';

function hitsOf(...quads: readonly (readonly [item: number, x0: number, x1: number, y0: number, y1: number])[]): HitTest {
  const writer = new QuadWriter();
  for (const quad of quads) writer.add(...quad);
  return new HitTest(writer.finish());
}

describe('what is at a point', () => {
  const hits = hitsOf([0, 0, 10, 0, 100], [1, 2, 4, 100, 150], [2, 4, 6, 100, 130]);

  it('is the quad there', () => {
    expect([50, 100, 149].map((value) => hits.itemAt(3, value))).toEqual([0, 1, 1]);
    expect(hits.itemAt(4, 129)).toBe(2);
  });

  it('is nothing above all quads and beside them', () => {
    expect([hits.itemAt(3, 150), hits.itemAt(1, 100), hits.itemAt(11, 50)]).toEqual([null, null, null]);
  });

  it('is a block that a thin one overlaps from below', () => {
    const overlapping = hitsOf([0, 0, 10, 0, 100], [1, 0, 10, 98, 160], [2, 0, 10, 99, 103]);
    expect([97, 98.5, 101, 110, 159].map((value) => overlapping.itemAt(5, value))).toEqual([0, 1, 2, 1, 1]);
    expect(overlapping.itemAt(5, 160)).toBeNull();
  });
});
