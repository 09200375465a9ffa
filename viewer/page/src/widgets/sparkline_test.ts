import { expect, it } from 'vitest';
import { sparklinePath } from './sparkline';

it('draws steps from the baseline', () => {
  expect(sparklinePath([0, 10], 10)).toBe('M0 18V18H48V1H96V18Z');
});

it('draws nothing without values', () => {
  expect(sparklinePath([], 10)).toBe('');
  expect(sparklinePath([0, 0], 0)).toBe('');
});

it('has the size that is asked for', () => {
  expect(sparklinePath([5, 10], 10, 10, 101)).toBe('M0 101V51H5V1H10V101Z');
});
