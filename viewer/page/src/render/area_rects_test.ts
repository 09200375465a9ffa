import { expect, it } from 'vitest';
import { Random } from '../testing/random';
import { forEachSeed, seedsUpTo } from '../testing/seeds';
import { areaRects } from './area_rects';

type Rect = readonly [x0: number, x1: number, low: number, high: number];

function rectsOf(edges: readonly number[], heights: readonly number[]): Rect[] {
  const rects: Rect[] = [];
  areaRects(edges, heights, (...rect) => rects.push(rect));
  return rects;
}

it('is one rectangle for columns of equal height', () => {
  expect(rectsOf([0, 1, 2, 3], [5, 5, 5])).toEqual([[0, 3, 0, 5]]);
});

it('puts the rectangles of higher columns on those that all columns share', () => {
  expect(rectsOf([0, 1, 2, 3], [2, 7, 3])).toEqual([[1, 2, 3, 7], [1, 3, 2, 3], [0, 3, 0, 2]]);
});

it('leaves gaps for unknown and negative heights', () => {
  expect(rectsOf([0, 1, 2, 3, 4], [2, NaN, -4, 2])).toEqual([[0, 1, 0, 2], [3, 4, 0, 2]]);
});

it('shows the height of a column without a width in the next one, of the last column in the one before', () => {
  expect(rectsOf([0, 1, 1, 2, 2], [2, 7, 3, 9])).toEqual([[1, 2, 2, 9], [0, 2, 0, 2]]);
});

it('is empty without columns', () => expect(rectsOf([], [])).toEqual([]));

it('covers what single columns would, each point once, with no more rectangles than columns', () => {
  forEachSeed(seedsUpTo(200), (seed) => {
    const random = new Random(seed);
    const count = Math.floor(random.next() * 40);
    const edges = [Math.floor(random.next() * 5)];
    for (let i = 0; i < count; ++i) edges.push(edges[i]! + Math.floor(random.next() * 4));
    const heights = Array.from({ length: count }, () => (random.next() < 0.1 ? NaN : Math.floor(random.next() * 12) - 2));
    const rects = rectsOf(edges, heights);
    expect(rects.length).toBeLessThanOrEqual(count);
    const neighbourAt = (x: number): readonly [number, number] => {
      for (let i = 0; i < count; ++i) if (edges[i]! <= x && x < edges[i + 1]!) return [edges[i]!, edges[i + 1]!];
      return [0, 0]; // no column has a width
    };
    const covered = new Map<string, number>();
    for (const [x0, x1, low, high] of rects) {
      for (let x = x0; x < x1; ++x) for (let y = low; y < high; ++y) covered.set(`${x},${y}`, (covered.get(`${x},${y}`) ?? 0) + 1);
    }
    const wanted = new Map<string, number>();
    const end = edges[count]!;
    for (const [i, height] of heights.entries()) {
      const isHidden = edges[i] === edges[i + 1];
      const own = isHidden ? (edges[i]! < end ? edges[i]! : end - 1) : -1; // the pixel of a neighbour
      const [first, behind] = isHidden ? neighbourAt(own) : [edges[i]!, edges[i + 1]!];
      for (let x = first; x < behind; ++x) for (let y = 0; y < height; ++y) wanted.set(`${x},${y}`, 1);
    }
    expect(new Map([...covered].sort())).toEqual(new Map([...wanted].sort()));
  });
});
