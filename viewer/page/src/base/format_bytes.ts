// Formats sizes for people as the command line prints them (analysis/text.h): binary units with
// three significant digits, or exact bytes where there is room.

import { threeDigits } from './digits';

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const;

/** 3.42 GiB; -1.50 MiB; 17 B. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '–';
  const sign = bytes < 0 ? '-' : '';
  const whole = Math.round(Math.abs(bytes));
  if (whole < 1024) return `${whole === 0 ? '' : sign}${whole} B`;
  let value = whole / 1024;
  let unit = 0;
  // 999.5 and above would round to four digits.
  while (value >= 999.5 && unit + 1 < UNITS.length) {
    value /= 1024;
    ++unit;
  }
  return `${sign}${threeDigits(value)} ${UNITS[unit]!}`;
}

/**
 * Formats the ticks of an axis. If several would read the same, writes the first one in full and
 * the others as differences from it.
 */
export function formatByteTicks(ticks: readonly number[]): string[] {
  const words = ticks.map(formatBytes);
  const [base] = ticks;
  if (base === undefined || new Set(words).size === words.length) return words;
  return ticks.map((bytes, i) => (i === 0 ? words[0]! : formatDelta(bytes - base)));
}

/** 3,670,016 bytes */
export function formatExactBytes(bytes: number): string {
  return `${formatCount(bytes)} ${Math.abs(bytes) === 1 ? 'byte' : 'bytes'}`;
}

/** +1.5 MiB, -3 B, ±0 */
export function formatDelta(bytes: number): string {
  if (bytes === 0) return '±0';
  return bytes > 0 ? `+${formatBytes(bytes)}` : formatBytes(bytes);
}

/** 1,234,567 */
export function formatCount(count: number): string {
  return Number.isFinite(count) ? Math.round(count).toString().replace(/\B(?=(\d{3})+$)/g, ',') : '–';
}

export function formatPercent(part: number, whole: number): string {
  if (whole === 0) return '–';
  if (part > 0 && part < whole / 10_000) return '< 0.01 %';
  return `${trimZeros(((100 * part) / whole).toPrecision(2))} %`;
}

/** Parses '64M', '1.5 GiB' or '4096' into bytes. Returns null if `text` is not a size. */
export function parseBytes(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(?:i?b)?\s*$/i.exec(text);
  if (match === null) return null;
  const power = ['', 'k', 'm', 'g', 't', 'p'].indexOf((match[2] ?? '').toLowerCase());
  return Math.round(Number(match[1]) * 1024 ** power);
}

function trimZeros(digits: string): string {
  if (digits.includes('e')) return String(Number(digits));
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits;
}
