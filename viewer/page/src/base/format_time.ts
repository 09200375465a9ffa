// Formats times for people: durations as the command line prints them (analysis/text.h). The page's
// times are ns since the recording began.

import { threeDigits } from './digits';

interface Unit {
  readonly ns: number;
  readonly name: string;
}
const UNITS: readonly Unit[] = [{ ns: 1, name: 'ns' }, { ns: 1e3, name: 'us' }, { ns: 1e6, name: 'ms' }];
const SECOND: Unit = { ns: 1e9, name: 's' };
const MINUTE: Unit = { ns: 60e9, name: 'm' };
const HOUR: Unit = { ns: 3600e9, name: 'h' };
const DAY: Unit = { ns: 86400e9, name: 'd' };

/** 12.3 ms; 3 m 10 s; 1 h 2 m. */
export function formatDuration(ns: number): string {
  if (!Number.isFinite(ns)) return '–';
  const whole = Math.trunc(Math.abs(ns));
  return `${ns < 0 && whole > 0 ? '-' : ''}${positiveDuration(whole)}`;
}

function positiveDuration(ns: number): string {
  if (ns < 1000) return `${ns} ns`;
  // 999.5 and above would round to four digits.
  if (ns < 2 * MINUTE.ns) {
    const unit = UNITS.find((each) => each.ns > 1 && ns < 999.5 * each.ns) ?? SECOND;
    return `${threeDigits(ns / unit.ns)} ${unit.name}`;
  }
  if (ns < HOUR.ns) return twoUnits(ns, MINUTE, SECOND);
  if (ns < DAY.ns) return twoUnits(ns, HOUR, MINUTE);
  return twoUnits(ns, DAY, HOUR);
}

function twoUnits(ns: number, big: Unit, small: Unit): string {
  return `${Math.floor(ns / big.ns)} ${big.name} ${Math.floor((ns % big.ns) / small.ns)} ${small.name}`;
}

/**
 * Formats a moment with as many digits as moments `resolution` ns apart need to differ: 12.3456 s.
 */
export function formatMoment(ns: number, resolution: number): string {
  const numberIn = (unit: Unit): string => {
    const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(unit.ns / Math.max(resolution, 1)))));
    return (ns / unit.ns).toFixed(digits);
  };
  const unit = UNITS.find((each) => Math.abs(Number(numberIn(each))) < 1000) ?? SECOND;
  return `${numberIn(unit)} ${unit.name}`;
}
