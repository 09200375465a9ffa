import { expect, it } from 'vitest';
import type { Meta } from '../data/protocol';
import { HistorySteps, stepOf } from './history_steps';
import { INITIAL_STATE, NO_FILTER, type State } from './state';

const STATE: State = { ...INITIAL_STATE, meta: { files: [] } as unknown as Meta };
const after = (change: Partial<State>, old: State = STATE): unknown => stepOf({ ...old, ...change }, old);

it('are made by hand', () => {
  expect(after({ view: 'flame' })).toBe('place');
  expect(after({ selection: { kind: 'stack', stack: 3 }, cursor: 8 })).toBe('selection');
  expect(after({ lanes: { ...STATE.lanes, pinned: ['0.1'] } })).toBe('place');
  expect(after({ lanesRange: { from: 0, to: 9 } })).toBe('window');
  expect(after({ filter: { ...NO_FILTER, text: 'a' } })).toBe('filter');
  expect(after({ range: { from: 0, to: 9 }, rangeEvents: { from: 0, to: 9 } })).toBe('window');
});

it('are not what follows from the data, and not options', () => {
  expect(after({ rangeEvents: { from: 0, to: 9 } })).toBeNull();
  expect(after({ theme: 'dark', colorBy: 'age' })).toBeNull();
  expect(after({ meta: { files: [] } as unknown as Meta, range: { from: 0, to: 9 } })).toBeNull();
  expect(after({ range: { from: 0, to: 9 } }, { ...STATE, following: true })).toBeNull();
});

it('are one for a series, and one for each selection', () => {
  const steps = new HistorySteps();
  expect([0, 100, 700, 2000].map((now) => steps.begins('window', now))).toEqual([true, false, false, true]);
  expect([2100, 2150].map((now) => steps.begins('selection', now))).toEqual([true, true]);
  expect([steps.begins('window', 2300), steps.begins('window', 2500)]).toEqual([false, true]); // to what was selected
  expect([steps.begins('filter', 2600), steps.begins('window', 2650), steps.begins('filter', 2700)]).toEqual([true, true, true]);
});
