import { describe, expect, it } from 'vitest';
import { formatDuration, formatMoment } from './format_time';

describe('formatDuration', () => {
  it.each([
    [0, '0 ns'], [900, '900 ns'], [12_400, '12.4 us'], [12_345_678, '12.3 ms'], [1.9e9, '1.90 s'], [7.66e9, '7.66 s'], [61e9, '61.0 s'],
    [190e9, '3 m 10 s'], [2_079_999e6, '34 m 39 s'], [22_320e9, '6 h 12 m'], [273_600e9, '3 d 4 h'], [-5, '-5 ns'], [-2e9, '-2.00 s'],
  ])('formats %d ns as the command line does: %s', (ns, words) => expect(formatDuration(ns)).toBe(words));

  it('uses the larger unit for what would round to 1000', () => {
    expect([999_499, 999_500, 999_499_999, 999_500_000].map(formatDuration)).toEqual(['999 us', '1.00 ms', '999 ms', '1.00 s']);
  });
  it('leaves out parts of a nanosecond', () => expect([0.5, -0.5, 1234.9].map(formatDuration)).toEqual(['0 ns', '0 ns', '1.23 us']));
  it('has a dash for what is no number', () => expect(formatDuration(Infinity)).toBe('–'));
});

describe('formatMoment', () => {
  it('distinguishes neighbours', () => {
    expect(formatMoment(12_345_678_901, 1e6)).toBe('12.346 s');
    expect(formatMoment(12_345_678_901, 1e9)).toBe('12 s');
    expect(formatMoment(0, 10)).toBe('0 ns');
  });
  it('uses the larger unit for what would round to 1000', () => {
    expect(formatMoment(999_999_999, 1e6)).toBe('1.000 s');
    expect(formatMoment(-999_999_999, 1e6)).toBe('-1.000 s');
    expect(formatMoment(999_400_000, 1e6)).toBe('999 ms');
  });
});
