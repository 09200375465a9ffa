// The areas of a timeline on its canvas, from top to bottom: tracks (instants, steps, phases,
// ranges), samples of the driver, the plot, the axis.

import { isSampled, type FileMeta, type LaneMeta } from '../../data/protocol';
import type { Box } from '../../render/renderer';
import { shownSteps } from './shown_steps';

export const GUTTER = 76;
const RIGHT = 10;
const ROW = 15;
const SAMPLES = 24;
const AXIS = 18;
const MAX_RANGE_ROWS = 3;

export interface Areas {
  readonly instants: Box;
  readonly steps: Box | null;
  readonly phases: Box | null;
  readonly ranges: readonly Box[]; // by depth
  readonly samples: Box | null;
  readonly plot: Box;
  readonly axis: Box;
}

export function areasOf(file: FileMeta, lane: Pick<LaneMeta, 'series'>, width: number, height: number): Areas {
  let top = 2;
  const inner = Math.max(40, width - GUTTER - RIGHT);
  const take = (pixels: number): Box => {
    const box = { left: GUTTER, top, width: inner, height: pixels };
    top += pixels;
    return box;
  };
  const instants = take(ROW);
  const steps = shownSteps(file).begin.length === 0 ? null : take(ROW);
  const phases = file.phases.length === 0 ? null : take(ROW);
  const depth = file.ranges.reduce((deepest, range) => Math.max(deepest, range.depth + 1), 0);
  const ranges = Array.from({ length: Math.min(depth, MAX_RANGE_ROWS) }, () => take(ROW));
  top += 4;
  const samples = lane.series.some(isSampled) ? take(SAMPLES) : null;
  top += samples === null ? 0 : 4;
  const plot = take(Math.max(60, height - top - AXIS));
  return { instants, steps, phases, ranges, samples, plot, axis: take(AXIS) };
}
