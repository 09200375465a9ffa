// The steps that the timeline shows: complete ones, and those of which only a part was recorded. A
// recording with fewer than two ends of steps has no complete steps (analysis/loop/phases.h), but
// what it has of a step is shown.

import type { FileMeta, StepsMeta } from '../../data/protocol';

export interface ShownSteps extends Pick<StepsMeta, 'begin' | 'end' | 'begin_ns' | 'end_ns'> {
  /** The steps from this one on are not complete. */
  readonly complete: number;
  /** What ended the last step if it is not complete. */
  readonly ending: string;
}

type Recorded = Pick<FileMeta, 'steps' | 'ooms' | 'phases' | 'marks' | 'events' | 'end_ns'>;

interface Moment {
  readonly event: number;
  readonly ns: number;
}

const known = new WeakMap<object, ShownSteps>();

export function shownSteps(file: Recorded): ShownSteps {
  let shown = known.get(file);
  if (shown === undefined) known.set(file, (shown = stepsOf(file)));
  return shown;
}

/** Returns 'step 12, until an allocation failed'. */
export function nameOfStep({ complete, ending }: ShownSteps, step: number): string {
  return `step ${step + 1}${step < complete ? '' : `, ${ending}`}`;
}

function stepsOf(file: Recorded): ShownSteps {
  const { steps } = file;
  const complete = { begin: steps.begin, end: steps.end, begin_ns: steps.begin_ns, end_ns: steps.end_ns, complete: steps.end.length, ending: '' };
  const last = steps.end.length > 0 ? { event: steps.end.at(-1)!, ns: steps.end_ns.at(-1)! } : null;
  if (last !== null) return withRest(complete, last, file);
  const mark = file.marks.find(({ name }) => name === 'step');
  if (mark !== undefined) return withRest(complete, mark, file);
  const start = { event: 0, ns: file.phases[0]?.begin_ns ?? 0 };
  const ended = file.phases.findLast(({ kind }) => kind === 'optimizer');
  if (ended === undefined) return withRest(complete, start, file);
  const first = { begin: [start.event], end: [ended.end], begin_ns: [start.ns], end_ns: [ended.end_ns], complete: 1, ending: '' };
  return withRest(first, { event: ended.end, ns: ended.end_ns }, file);
}

/** Adds the part of a step that begins at a moment, if something of it was recorded. */
function withRest(steps: ShownSteps, from: Moment, { ooms, phases, events, end_ns: endNs }: Recorded): ShownSteps {
  const failed = ooms.find(({ event }) => event > from.event);
  const isBegun = phases.some(({ kind, begin }) => begin >= from.event && (kind === 'forward' || kind === 'backward'));
  if (failed === undefined && !isBegun) return steps;
  const end = failed ?? { event: events, ns: endNs };
  return {
    begin: [...steps.begin, from.event], end: [...steps.end, end.event],
    begin_ns: [...steps.begin_ns, from.ns], end_ns: [...steps.end_ns, end.ns],
    complete: steps.complete, ending: failed === undefined ? 'not complete' : 'until an allocation failed',
  };
}
