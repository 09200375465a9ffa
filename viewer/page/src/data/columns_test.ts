import { describe, expect, it } from 'vitest';
import { Random } from '../testing/random';
import { forEachSeed } from '../testing/seeds';
import { edgeOf, firstColumn, midpointOf, widthOf } from './columns';
import type { Window } from './protocol';

const of = (from: number, to: number, columns: number): Window => ({ file: 0, lane: 0, axis: 'event', from, to, columns });

describe('columns of a window', () => {
  it('lie side by side, with their midpoints between their edges', () => {
    const window = of(10, 30, 5);
    expect([0, 1, 5].map((column) => edgeOf(window, column))).toEqual([10, 14, 30]);
    expect([0, 4].map((column) => midpointOf(window, column))).toEqual([12, 28]);
    expect(widthOf(window)).toBe(4);
  });
  it('have the midpoint that an event is at, however it is rounded', () => {
    // As in viewer/index/view_index_test.cc.
    expect(midpointOf(of(0, 11358, 317), 158)).toBe(5679);
    expect(midpointOf(of(0, 12, 7), 3)).toBe(6);
  });
  it('begin at a midpoint that is not before a position', () => {
    const window = of(0, 22, 15);
    expect(midpointOf(window, 7)).toBe(11);
    expect(firstColumn(window, 11)).toBe(7);
    expect(firstColumn(window, 11.000001)).toBe(8);
    expect(firstColumn(window, -5)).toBe(0);
    expect(firstColumn(window, Infinity)).toBe(15);
  });
  it('are the same as found by linear search, on random windows', () => {
    forEachSeed([1], (seed) => {
      const random = new Random(seed);
      for (let round = 0; round < 2000; round++) {
        const from = random.below(2) === 0 ? random.below(1000) : random.next() * 1e12;
        const window = of(from, from + (random.below(2) === 0 ? 1 + random.below(5000) : random.next() * 1e6), 1 + random.below(90));
        const middles = Array.from({ length: window.columns }, (_, column) => midpointOf(window, column));
        const position = random.below(2) === 0 ? random.pick(middles) : Math.round(from + random.next() * (window.to - from));
        const slow = middles.findIndex((middle) => middle >= position);
        expect(firstColumn(window, position), `${JSON.stringify(window)} at ${position}`).toBe(slow < 0 ? window.columns : slow);
      }
    });
  });
});
