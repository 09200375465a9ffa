// Maps events to positions on an axis.

import { type Axis, NEVER, type StepsMeta } from '../protocol';
import { lowerBound, upperBound } from '../../base/binary_search';

export interface Positions {
  /**
   * Returns the position of an event, Infinity for NEVER. Never decreases from one event to the
   * next.
   */
  of(event: number): number;
  /** Returns the last event at or before a position, or 0 if there is none. */
  eventAt(position: number): number;
  /** Returns the number of events whose position is before `position`. */
  eventsBefore(position: number): number;
  /** Where the axis ends: the last event has its place on that of events. */
  readonly end: number;
  /** The units of a duration per unit of the axis; the class is floor(log2(duration * units)). */
  readonly units: number;
}

/**
 * Returns the positions of an axis. `ns` has the time of each event; [0] is the beginning. `endNs` is
 * the end of the recording.
 */
export function positionsOf(axis: Axis, ns: Float64Array, steps: StepsMeta, endNs: number): Positions {
  switch (axis) {
    case 'event':
      return eventPositions(ns.length - 1);
    case 'time':
      return tablePositions(ns, 1, endNs);
    case 'step':
      return stepPositions(stepTable(ns.length - 1, steps));
  }
}

function eventPositions(last: number): Positions {
  return {
    of: (event) => (event === NEVER ? Infinity : event),
    eventAt: (position) => Math.min(last, Math.max(0, Math.floor(position))),
    eventsBefore: (position) => Math.min(last + 1, Math.max(0, Math.ceil(position))),
    end: last + 1,
    units: 1,
  };
}

function stepPositions(table: Float64Array): Positions {
  return tablePositions(table, 4096, table.at(-1)!);
}

function tablePositions(table: Float64Array, units: number, end: number): Positions {
  return {
    of: (event) => (event === NEVER ? Infinity : table[Math.min(event, table.length - 1)]!),
    eventAt: (position) => Math.max(0, upperBound(table, position) - 1),
    eventsBefore: (position) => lowerBound(table, position),
    end,
    units,
  };
}

/**
 * Returns the position of each event on the step axis. Step s (from 1) is [s, s + 1), divided
 * evenly among its events and those up to the next step. Events before the first step are in [0,
 * 1); those after the last step are in the two units that follow it.
 */
function stepTable(last: number, steps: StepsMeta): Float64Array {
  const table = new Float64Array(last + 1);
  let from = 0;
  let value = 0;
  const knot = (event: number, position: number): void => {
    for (let e = from + 1; e < event && e <= last; e++) {
      table[e] = value + ((position - value) * (e - from)) / (event - from);
    }
    if (event <= last) table[event] = position;
    from = event;
    value = position;
  };
  steps.begin.forEach((begin, i) => knot(begin, i + 1));
  if (steps.end.length > 0) knot(steps.end[steps.end.length - 1]!, steps.begin.length + 1);
  knot(last, steps.begin.length + 2);
  return table;
}
