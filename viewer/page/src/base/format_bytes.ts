// Sizes for people: binary units, three significant digits; exact bytes where space is no matter.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** 3.42 GiB; -1.5 MiB; 17 B. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '–';
  let value = Math.abs(bytes);
  let unit = 0;
  // 1023.6 KiB would be written as 1024 KiB.
  while (unit < UNITS.length - 1 && Math.round(value) >= 1024) {
    value /= 1024;
    ++unit;
  }
  const sign = bytes < 0 ? '-' : '';
  const digits = unit === 0 || value >= 1000 ? value.toFixed(0) : trimZeros(value.toPrecision(3));
  return `${sign}${digits} ${UNITS[unit]!}`;
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
  return whole === 0 ? '–' : `${trimZeros(((100 * part) / whole).toPrecision(2))} %`;
}

/** '64M', '1.5 GiB', '4096' in bytes; null: not a size. */
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
