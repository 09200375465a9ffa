import { expect, it } from 'vitest';
import { eventOfStep, stepBeside, stepOf } from './seek_bar';

const FILE = { steps: { source: 'mark', inferred: false, begin: [10, 20], end: [18, 30], begin_ns: [], end_ns: [] } };

it('finds the step of an event, or that it is in none', () => {
  expect([10, 11, 18, 19, 20, 21, 30, 31].map((event) => stepOf(FILE, event))).toEqual([null, 1, 1, null, null, 2, 2, null]);
});

it('goes to the first event of a step, or of the nearest step', () => {
  expect([0, 1, 2, 99].map((step) => eventOfStep(FILE, step))).toEqual([11, 11, 21, 21]);
});

it('goes from step to step, also from between steps', () => {
  expect([5, 11, 19, 25].map((event) => stepBeside(FILE, event, 1))).toEqual([1, 2, 2, 3]);
  expect([5, 11, 19, 25].map((event) => stepBeside(FILE, event, -1))).toEqual([0, 0, 1, 1]);
});
