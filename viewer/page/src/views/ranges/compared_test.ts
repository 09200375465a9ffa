import { expect, it } from 'vitest';
import { formatDifference, formatMeasure, measureIn, moreWords } from './compared';

it('says what is more and what is less', () => {
  expect(moreWords('bytes', { a: 1024, b: 1536 })).toBe('512 B more than in A, +50 %');
  expect(moreWords('bytes', { a: 2048, b: 1024 })).toBe('1.00 KiB less than in A, -50 %');
  expect(moreWords('allocations', { a: 4, b: 3 })).toBe('1 fewer than in A, -25 %');
  expect(moreWords('allocation_rate', { a: 0, b: 12.3456 })).toBe('12.3/s more than in A');
  expect(moreWords('growth', { a: 1024, b: 0 })).toBe('1.00 KiB less than in A');
  expect(moreWords('mean_bytes', { a: 7.1, b: 7.3 })).toBe('as in A');
});

it('writes values in the units of their measure', () => {
  expect([formatMeasure('growth', 1024), formatMeasure('allocations', 1203), formatMeasure('allocation_rate', 0.01234), formatMeasure('mean_bytes', 512.4)]).toEqual(['+1.00 KiB', '1,203', '0.0123/s', '512 B']);
  expect([formatDifference('allocations', -3), formatDifference('allocation_rate', 0), formatDifference('allocation_rate', 1234.5), formatDifference('mean_bytes', 0.2)]).toEqual(['-3', '±0', '+1,235/s', '±0']);
});

it('compares bytes at the peak unless the rows were sorted by another measure that ranges share', () => {
  expect([measureIn('name'), measureIn('byte_seconds'), measureIn('growth')]).toEqual(['bytes', 'bytes', 'growth']);
});
