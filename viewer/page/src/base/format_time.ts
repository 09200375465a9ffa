// Formats times for people. The page's times are ns since the recording began.

const UNITS: readonly (readonly [number, string])[] = [
  [3600e9, 'h'],
  [60e9, 'min'],
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];

/** 12.3 ms; 1 h 02 min; 0 s. */
export function formatDuration(ns: number): string {
  if (!Number.isFinite(ns)) return '–';
  if (ns === 0) return '0 s';
  const sign = ns < 0 ? '-' : '';
  const size = Math.abs(ns);
  if (size >= 3600e9) return `${sign}${split(size, 3600e9, 'h', 60e9, 'min')}`;
  if (size >= 60e9) return `${sign}${split(size, 60e9, 'min', 1e9, 's')}`;
  const [unit, name] = UNITS.find(([each]) => size >= each) ?? [1, 'ns'];
  return `${sign}${Number((size / unit).toPrecision(3))} ${name}`;
}

/**
 * Formats a moment with as many digits as moments `resolution` ns apart need to differ: 12.3456 s.
 */
export function formatMoment(ns: number, resolution: number): string {
  const [unit, name] = UNITS.find(([each, label]) => Math.abs(ns) >= each && label !== 'h' && label !== 'min') ?? [1, 'ns'];
  const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(unit / Math.max(resolution, 1)))));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

function split(ns: number, big: number, bigName: string, small: number, smallName: string): string {
  const parts = Math.round(ns / small);
  const perBig = big / small;
  return `${Math.floor(parts / perBig)} ${bigName} ${String(parts % perBig).padStart(2, '0')} ${smallName}`;
}
