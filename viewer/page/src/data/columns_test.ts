import { describe, expect, it } from 'vitest';
import { edgeOf, midpointOf, widthOf } from './columns';
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
});
