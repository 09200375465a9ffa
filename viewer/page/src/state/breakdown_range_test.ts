import { expect, it } from 'vitest';
import type { FileMeta, LaneMeta, Meta } from '../data/protocol';
import { breakdownRange, breakdownWords } from './breakdown_range';
import { INITIAL_STATE, type State } from './state';

const LANE = { lane: 0, peak_event: 70 } as LaneMeta;
const META = { files: [{ file: 0, events: 100, lanes: [LANE] } as unknown as FileMeta] } as unknown as Meta;
const STATE: State = { ...INITIAL_STATE, meta: META, rangeEvents: { from: 0, to: 100 } };
const described = (state: State): readonly [number, number, string] => {
  const range = breakdownRange(state);
  return [range.from, range.to, breakdownWords(state, range)];
};

it('is of the selected range, or of what is shown', () => {
  expect(described(STATE)).toEqual([0, 100, 'The whole recording']);
  expect(described({ ...STATE, rangeEvents: { from: 3.5, to: 20.2 } })).toEqual([3, 21, 'Shown: events 3 to 21']);
  expect(described({ ...STATE, selection: { kind: 'range', from: 5, to: 9 } })).toEqual([5, 9, 'Selected: events 5 to 9']);
});

it('is of the moment at the cursor, or at the peak', () => {
  const breakdown = { ...STATE.breakdown, of: 'cursor' } as const;
  expect(described({ ...STATE, breakdown })).toEqual([70, 70, 'At the peak, after event 70']);
  expect(described({ ...STATE, breakdown, cursor: 12 })).toEqual([12, 12, 'After event 12']);
});

it('of a link to a longer recording ends with this one', () => {
  expect(breakdownRange({ ...STATE, selection: { kind: 'range', from: 90, to: 5000 } })).toEqual({ from: 90, to: 100 });
  expect(breakdownRange({ ...STATE, selection: { kind: 'range', from: 200, to: 300 } })).toEqual({ from: 100, to: 100 });
});
