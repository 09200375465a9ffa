import { expect, it } from 'vitest';
import type { InstantMeta, OomMeta, SpanMeta, StepsMeta } from '../../data/protocol';
import { nameOfStep, shownSteps } from './shown_steps';

const NONE: StepsMeta = { source: '', inferred: false, begin: [], end: [], begin_ns: [], end_ns: [] };
const TWO: StepsMeta = { source: 'marks', inferred: false, begin: [0, 5], end: [5, 9], begin_ns: [0, 50], end_ns: [50, 90] };
const phase = (kind: string, begin: number, end: number): SpanMeta => ({ kind, name: kind, begin, end, begin_ns: 10 * begin, end_ns: 10 * end, depth: 0, thread: 0 });
const instant = (event: number, name = ''): InstantMeta & OomMeta => ({ event, ns: 10 * event, name, device: 0, requested: 1, stack: 0 });
const FILE = { steps: NONE, ooms: [], phases: [] as SpanMeta[], marks: [] as InstantMeta[], events: 20, end_ns: 200 };
const shown = (change: Partial<Parameters<typeof shownSteps>[0]>): string[] => {
  const steps = shownSteps({ ...FILE, ...change });
  return steps.begin.map((begin, i) => `${nameOfStep(steps, i)}: ${begin} to ${steps.end[i]!}`);
};

it('has complete steps, and nothing after them if nothing was begun', () => {
  expect(shown({ steps: TWO })).toEqual(['step 1: 0 to 5', 'step 2: 5 to 9']);
  expect(shown({ steps: TWO, phases: [phase('forward', 5, 6)] })).toHaveLength(2);
});

it('has the step that was begun after them', () => {
  expect(shown({ steps: TWO, phases: [phase('forward', 9, 12)] }).at(-1)).toBe('step 3, not complete: 9 to 20');
});

it('ends the step in which an allocation failed there', () => {
  expect(shown({ steps: TWO, ooms: [instant(4), instant(12), instant(13)] }).at(-1)).toBe('step 3, until an allocation failed: 9 to 12');
  expect(shown({ steps: TWO, ooms: [instant(4)] })).toHaveLength(2);
});

it('has the only step of a recording with one', () => {
  expect(shown({ phases: [phase('forward', 0, 3), phase('backward', 3, 6), phase('optimizer', 6, 9)] })).toEqual(['step 1: 0 to 9']);
});

it('has a step that was begun, with or without a complete one before it', () => {
  const begun = [phase('forward', 0, 3), phase('backward', 3, 6)];
  expect(shown({ phases: begun })).toEqual(['step 1, not complete: 0 to 20']);
  expect(shown({ phases: [...begun, phase('optimizer', 6, 9), phase('backward', 12, 14)] })).toEqual(['step 1: 0 to 9', 'step 2, not complete: 9 to 20']);
  expect(shown({ phases: begun, ooms: [instant(8)] })).toEqual(['step 1, until an allocation failed: 0 to 8']);
});

it('begins a step at the only mark of one', () => {
  expect(shown({ marks: [instant(4, 'step')], phases: [phase('forward', 5, 9)] })).toEqual(['step 1, not complete: 4 to 20']);
});

it('has none if nothing is known of a training loop', () => {
  expect(shown({})).toEqual([]);
  expect(shown({ marks: [instant(4, 'loaded')] })).toEqual([]);
});
