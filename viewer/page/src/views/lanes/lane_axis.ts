// The axis that several recordings share. Each has its own axis of time or steps, which is shifted:
// by the clock by the time at which the recording began, otherwise so that all begin together.

import { formatMoment } from '../../base/format_time';
import type { FileMeta } from '../../data/protocol';
import { domainOf, type Range } from '../../state/navigator';
import type { LaneAlignment } from '../../state/state';
import { axisWords } from '../timeline/draw_plot';

export interface LaneAxis {
  readonly align: LaneAlignment;
  readonly axis: 'time' | 'step'; // which axis of the recordings it shows
  readonly domain: Range; // what the common axis can show
  /** By the clock: the time at which the first recording began, in ns since 1970. */
  readonly first: bigint | null;
  /**
   * By how much positions on the common axis exceed those that State and addresses have, which by
   * the clock are counted from the beginning of the first of `files`. Unlike the recording that began
   * first, it is the same however many of them are loaded.
   */
  readonly base: number;
  /**
   * Returns by how much positions on the common axis exceed the recording's own; null if the
   * recording has no such axis.
   */
  readonly shiftOf: (file: FileMeta) => number | null;
}

/** Returns the alignments, their names, and for each why it is impossible; '' if it is possible. */
export function alignmentsOf(files: readonly FileMeta[]): (readonly [LaneAlignment, string, string])[] {
  const noSteps = files.some(hasSteps) ? '' : 'no steps were found';
  if (files.length < 2) return [['start', 'time', ''], ['step', 'steps', noSteps]];
  const noClock = files.every((file) => startOf(file) !== null) ? '' : 'not all start times are known';
  return [['clock', 'by the clock', noClock], ['start', 'from their beginnings', ''], ['step', 'by steps', noSteps]];
}

/**
 * `wanted` is the alignment that was chosen. Without one, or if it is impossible, the most suitable
 * one is used.
 */
export function laneAxis(files: readonly FileMeta[], wanted: LaneAlignment | null): LaneAxis {
  const isPossible = alignmentsOf(files).some(([align, , why]) => align === wanted && why === '');
  const align = wanted !== null && isPossible ? wanted : suitableAlignment(files);
  const axis = align === 'step' ? 'step' : 'time';
  const first = align === 'clock' ? files.map((file) => startOf(file)!).reduce((a, b) => (a < b ? a : b)) : null;
  const shiftOf = (file: FileMeta): number | null => {
    if (align === 'step') return hasSteps(file) ? 0 : null;
    return first === null ? -domainOf(file, axis).from : Number((startOf(file) ?? first) - first);
  };
  const extents = files.flatMap((file) => {
    const shift = shiftOf(file);
    const { from, to } = domainOf(file, axis);
    return shift === null ? [] : [{ from: from + shift, to: to + shift }];
  });
  const domain = { from: Math.min(...extents.map(({ from }) => from)), to: Math.max(...extents.map(({ to }) => to)) };
  const base = first === null ? 0 : Number(startOf(files[0]!)! - first);
  return { align, axis, first, base, shiftOf, domain: extents.length === 0 ? { from: 0, to: 1 } : domain };
}

/** The clock suits recordings that were all in progress at some moment, such as ranks of a job. */
function suitableAlignment(files: readonly FileMeta[]): LaneAlignment {
  const starts = files.map(startOf);
  if (files.length < 2 || starts.includes(null)) return 'start';
  const latestStart = (starts as bigint[]).reduce((a, b) => (a > b ? a : b));
  return files.every((file, i) => starts[i]! + BigInt(Math.round(file.end_ns)) >= latestStart) ? 'clock' : 'start';
}

const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 } as const;

/** Describes a position. `resolution` is the distance to its neighbours. */
export function momentWords({ align, axis, first }: LaneAxis, position: number, resolution: number): string {
  if (align === 'step') return axisWords(axis, position, resolution);
  const moment = formatMoment(position, resolution);
  if (first === null) return moment;
  const clock = new Date(Number(first / 1_000_000n) + position / 1e6);
  return `${moment} (${clock.toLocaleTimeString('en-GB', CLOCK)})`;
}

function hasSteps(file: FileMeta): boolean {
  return file.steps.source !== '';
}

function startOf({ start_unix_ns: text }: FileMeta): bigint | null {
  return /^[1-9]\d*$/.test(text) ? BigInt(text) : null;
}
