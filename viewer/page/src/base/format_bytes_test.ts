import { describe, expect, it } from 'vitest';
import { formatBytes, formatByteTicks, formatCount, formatDelta, formatExactBytes, formatPercent, parseBytes } from './format_bytes';

describe('formatBytes', () => {
  it('has three significant digits in binary units', () => {
    expect(formatBytes(0)).toBe('0 B');
    expect(formatBytes(1023)).toBe('1023 B');
    expect(formatBytes(1024)).toBe('1.00 KiB');
    expect(formatBytes(119_808)).toBe('117 KiB');
    expect(formatBytes(64_277_709)).toBe('61.3 MiB');
    expect(formatBytes(3_672_196_301)).toBe('3.42 GiB');
    expect(formatBytes(-1536)).toBe('-1.50 KiB');
    expect(formatBytes(2 ** 64)).toBe('16.0 EiB');
  });
  it('uses the next unit instead of a fourth digit', () => {
    expect(formatBytes(1000 * 1024 ** 2)).toBe('0.98 GiB');
    expect(formatBytes(999 * 1024 ** 2)).toBe('999 MiB');
    expect(formatBytes(1_048_000)).toBe('1.00 MiB');
    expect(formatBytes(1024 ** 3 - 1)).toBe('1.00 GiB');
  });
  it('rounds ties to even', () => {
    expect(formatBytes(1.125 * 1024)).toBe('1.12 KiB');
    expect(formatBytes(1.375 * 1024)).toBe('1.38 KiB');
    expect(formatBytes(10.25 * 1024)).toBe('10.2 KiB');
    expect(formatBytes(100.5 * 1024)).toBe('100 KiB');
    expect(formatBytes(101.5 * 1024)).toBe('102 KiB');
  });
  it('has no fractions of a byte', () => {
    expect(formatBytes(0.4)).toBe('0 B');
    expect(formatBytes(-0.4)).toBe('0 B');
    expect(formatBytes(1023.6)).toBe('1.00 KiB');
  });
  it('prints a dash for an unknown value', () => expect(formatBytes(NaN)).toBe('–'));
});

describe('other figures', () => {
  it('groups digits', () => {
    expect(formatCount(999)).toBe('999');
    expect(formatCount(1234567)).toBe('1,234,567');
    expect(formatExactBytes(1)).toBe('1 byte');
  });
  it('signs differences', () => {
    expect(formatDelta(1024)).toBe('+1.00 KiB');
    expect(formatDelta(0)).toBe('±0');
  });
  it('prints a dash for a share of zero', () => {
    expect(formatPercent(1, 0)).toBe('–');
    expect(formatPercent(1, 8)).toBe('13 %');
    expect(formatPercent(1, 20_000)).toBe('< 0.01 %');
    expect(formatPercent(0, 20_000)).toBe('0 %');
    expect(formatPercent(8, 8)).toBe('100 %');
  });
});

describe('parseBytes', () => {
  it('accepts units in any spelling', () => {
    expect(parseBytes('64M')).toBe(64 * 1024 ** 2);
    expect(parseBytes('1.5 GiB')).toBe(1.5 * 1024 ** 3);
    expect(parseBytes(' 4096 ')).toBe(4096);
    expect(parseBytes('2kb')).toBe(2048);
  });
  it('rejects what is not a size', () => {
    expect(parseBytes('')).toBeNull();
    expect(parseBytes('M')).toBeNull();
    expect(parseBytes('-3')).toBeNull();
  });
});

describe('ticks of an axis', () => {
  it('are sizes if these differ', () => expect(formatByteTicks([0, 1024, 2048])).toEqual(['0 B', '1.00 KiB', '2.00 KiB']));
  it('are differences from the lowest in a narrow band', () => {
    const low = 350 * 1024 ** 2;
    expect(formatByteTicks([low, low + 512, low + 1024])).toEqual(['350 MiB', '+512 B', '+1.00 KiB']);
  });
  it('may be empty', () => expect(formatByteTicks([])).toEqual([]));
});
