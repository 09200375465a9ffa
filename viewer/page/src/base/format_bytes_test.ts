import { describe, expect, it } from 'vitest';
import { formatBytes, formatCount, formatDelta, formatExactBytes, formatPercent, parseBytes } from './format_bytes';

describe('formatBytes', () => {
  it('has three significant digits in binary units', () => {
    expect(formatBytes(0)).toBe('0 B');
    expect(formatBytes(1023)).toBe('1023 B');
    expect(formatBytes(1024)).toBe('1 KiB');
    expect(formatBytes(3.42 * 1024 ** 3)).toBe('3.42 GiB');
    expect(formatBytes(100 * 1024 ** 2)).toBe('100 MiB');
    expect(formatBytes(1000 * 1024 ** 2)).toBe('1000 MiB');
    expect(formatBytes(-1536)).toBe('-1.5 KiB');
  });
  it('never writes 1024 of a unit that has a next one', () => expect(formatBytes(1024 ** 3 - 1)).toBe('1 GiB'));
  it('has no number for what is not known', () => expect(formatBytes(NaN)).toBe('–'));
});

describe('other figures', () => {
  it('groups digits', () => {
    expect(formatCount(999)).toBe('999');
    expect(formatCount(1234567)).toBe('1,234,567');
    expect(formatExactBytes(1)).toBe('1 byte');
  });
  it('signs differences', () => {
    expect(formatDelta(1024)).toBe('+1 KiB');
    expect(formatDelta(0)).toBe('±0');
  });
  it('has no share of nothing', () => {
    expect(formatPercent(1, 0)).toBe('–');
    expect(formatPercent(1, 8)).toBe('13 %');
    expect(formatPercent(8, 8)).toBe('100 %');
  });
});

describe('parseBytes', () => {
  it('takes units in any writing', () => {
    expect(parseBytes('64M')).toBe(64 * 1024 ** 2);
    expect(parseBytes('1.5 GiB')).toBe(1.5 * 1024 ** 3);
    expect(parseBytes(' 4096 ')).toBe(4096);
    expect(parseBytes('2kb')).toBe(2048);
  });
  it('refuses what is no size', () => {
    expect(parseBytes('')).toBeNull();
    expect(parseBytes('M')).toBeNull();
    expect(parseBytes('-3')).toBeNull();
  });
});
