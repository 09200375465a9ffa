import { describe, expect, it } from 'vitest';
import { formatDuration, formatMoment } from './format_time';

describe('formatDuration', () => {
  it('uses the unit that fits', () => {
    expect(formatDuration(0)).toBe('0 s');
    expect(formatDuration(7)).toBe('7 ns');
    expect(formatDuration(12_345_678)).toBe('12.3 ms');
    expect(formatDuration(61e9)).toBe('1 min 01 s');
    expect(formatDuration(3720e9)).toBe('1 h 02 min');
    expect(formatDuration(-2e9)).toBe('-2 s');
  });
  it('carries into the larger unit', () => expect(formatDuration(119.6e9)).toBe('2 min 00 s'));
});

describe('formatMoment', () => {
  it('distinguishes neighbours', () => {
    expect(formatMoment(12_345_678_901, 1e6)).toBe('12.346 s');
    expect(formatMoment(12_345_678_901, 1e9)).toBe('12 s');
    expect(formatMoment(0, 10)).toBe('0 ns');
  });
});
