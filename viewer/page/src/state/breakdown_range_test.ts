import { expect, it } from 'vitest';
import type { FileMeta, LaneMeta, Meta } from '../data/protocol';
import { breakdownSubject, NOTHING_POINTED, subjectWords, type Pointed } from './breakdown_range';
import { INITIAL_STATE, type State } from './state';

const LANE = { lane: 0, peak_event: 70 } as LaneMeta;
const META = { files: [{ file: 0, events: 100, lanes: [LANE] } as unknown as FileMeta] } as unknown as Meta;
const STATE: State = { ...INITIAL_STATE, meta: META, rangeEvents: { from: 0, to: 100 } };
const SELECTED: State = { ...STATE, selection: { kind: 'range', from: 5, to: 9, box: null } };
const BOX = { axis: 'event', layout: 'stacked', low: 1024, high: 2048 } as const;
const POINTER: Pointed = { moment: 44, brush: null };
const of = (state: State, choice: State['breakdown']['of']): State => ({ ...state, breakdown: { ...state.breakdown, of: choice } });
const described = (state: State, pointed = NOTHING_POINTED): readonly [number, number, string] => {
  const subject = breakdownSubject(state, pointed);
  return [subject.from, subject.to, subjectWords(state, subject)];
};

it('is of what is shown if there is nothing to follow', () => {
  expect(described(STATE)).toEqual([0, 100, 'The whole recording']);
  expect(described({ ...STATE, rangeEvents: { from: 3.5, to: 20.2 } })).toEqual([3, 21, 'Shown: events 3 to 21']);
});

it('follows the pointer, then the cursor', () => {
  expect(described(STATE, POINTER)).toEqual([44, 44, 'At the pointer, after event 44']);
  expect(described({ ...STATE, cursor: 12 }, POINTER)).toEqual([44, 44, 'At the pointer, after event 44']);
  expect(described({ ...STATE, cursor: 12 })).toEqual([12, 12, 'At the cursor, after event 12']);
});

it('stays at a selected range whatever the pointer does', () => {
  expect(described(SELECTED, POINTER)).toEqual([5, 9, 'Selected: events 5 to 9']);
  expect(described({ ...SELECTED, cursor: 12 })).toEqual([5, 9, 'Selected: events 5 to 9']);
});

it('is of the range that is being dragged out', () => {
  expect(described(SELECTED, { moment: 44, brush: { from: 30, to: 40, box: null } })).toEqual([30, 40, 'Selected: events 30 to 40']);
});

it('names the part of the picture', () => {
  const state: State = { ...STATE, selection: { kind: 'range', from: 5, to: 9, box: BOX } };
  expect(breakdownSubject(state, NOTHING_POINTED).box).toEqual(BOX);
  expect(described(state)[2]).toBe('Selected: events 5 to 9, between 1.00 KiB and 2.00 KiB');
  expect(described({ ...STATE, band: { low: 0, high: 512 } })[2]).toBe('Shown: events 0 to 100, between 0 B and 512 B');
  expect(described({ ...STATE, layout: 'address', band: { low: 0, high: 512 } })[2]).toBe('Shown: events 0 to 100, between 0 B and 512 B of the addresses');
});

it('can stay at what is shown, or at the cursor', () => {
  expect(described(of({ ...STATE, cursor: 12 }, 'range'), POINTER)).toEqual([0, 100, 'The whole recording']);
  expect(described(of(STATE, 'cursor'), POINTER)).toEqual([70, 70, 'At the peak, after event 70']);
  expect(described(of({ ...SELECTED, cursor: 12 }, 'cursor'))).toEqual([12, 12, 'At the cursor, after event 12']);
});

it('compares the second cursor with the pointer or the cursor, in order of time', () => {
  expect(described(of({ ...STATE, base: 20, cursor: 50 }, 'compare'))).toEqual([20, 50, 'Changed from event 20 to event 50']);
  expect(described(of({ ...STATE, base: 60, cursor: 50 }, 'compare'), POINTER)).toEqual([44, 60, 'Changed from event 44 to event 60']);
  expect(described(of(STATE, 'compare'))).toEqual([0, 70, 'Changed from event 0 to event 70']);
  expect(described(of(SELECTED, 'compare'), POINTER)).toEqual([5, 9, 'Changed from event 5 to event 9']);
});

it('of a link to a longer recording ends with this one', () => {
  const selected = (from: number, to: number): State => ({ ...STATE, selection: { kind: 'range', from, to, box: null } });
  expect(described(selected(90, 5000))).toEqual([90, 100, 'Selected: events 90 to 100']);
  expect(described(selected(200, 300))).toEqual([100, 100, 'Selected: event 100']);
});
