import { expect, it } from 'vitest';
import { lowerBound, upperBound } from './binary_search';

it('finds both ends of a run of equal values', () => {
  const values = [1, 3, 3, 3, 8];
  expect([lowerBound(values, 3), upperBound(values, 3)]).toEqual([1, 4]);
  expect([lowerBound(values, 0), upperBound(values, 9)]).toEqual([0, 5]);
  expect([lowerBound([], 1), upperBound([], 1)]).toEqual([0, 0]);
});
