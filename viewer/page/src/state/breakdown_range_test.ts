import { expect, it } from 'vitest';
import type { FileMeta, LaneMeta, Meta } from '../data/protocol';
import { breakdownSubject, NOTHING_POINTED, rangeWords, subjectWords, swappedRanges, withoutRangeA, withRangeA, type Pointed } from './breakdown_range';
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

it('compares what is selected, or shown, with range A', () => {
  const chosen: State = { ...SELECTED, ...withRangeA(SELECTED) };
  expect(chosen).toMatchObject({ rangeA: { from: 5, to: 9, box: null }, selection: { kind: 'none' }, breakdown: { open: true, of: 'ranges', side: 'difference' } });
  expect(described(chosen, POINTER)).toEqual([0, 100, 'B, the whole recording']);
  const both: State = { ...chosen, selection: { kind: 'range', from: 30, to: 400, box: BOX } };
  expect(described(both)).toEqual([30, 100, 'B, selected: events 30 to 100, between 1.00 KiB and 2.00 KiB']);
  expect(breakdownSubject(both, NOTHING_POINTED).rangeA).toEqual({ from: 5, to: 9, box: null });
  expect(described(both, { moment: 44, brush: { from: 40, to: 50, box: null } })).toEqual([40, 50, 'B, selected: events 40 to 50']);
  expect(breakdownSubject(of(both, 'range'), NOTHING_POINTED).rangeA).toBeNull();
});

it('swaps the ranges, and stops comparing them', () => {
  const both: State = of({ ...SELECTED, rangeA: { from: 30, to: 40, box: BOX } }, 'ranges');
  expect(swappedRanges(both)).toEqual({ rangeA: { from: 5, to: 9, box: null }, selection: { kind: 'range', from: 30, to: 40, box: BOX } });
  expect(swappedRanges(SELECTED)).toEqual({});
  expect(withoutRangeA(both)).toMatchObject({ rangeA: null, breakdown: { of: 'follow', sort: 'bytes' } });
  expect(withRangeA(of({ ...STATE, band: { low: 0, high: 512 } }, 'ranges')).rangeA).toEqual({ from: 0, to: 100, box: { axis: 'event', layout: 'stacked', low: 0, high: 512 } });
  expect(rangeWords({ from: 3, to: 3, box: null })).toBe('event 3');
});

it('of a link to a longer recording ends with this one', () => {
  const selected = (from: number, to: number): State => ({ ...STATE, selection: { kind: 'range', from, to, box: null } });
  expect(described(selected(90, 5000))).toEqual([90, 100, 'Selected: events 90 to 100']);
  expect(described(selected(200, 300))).toEqual([100, 100, 'Selected: event 100']);
});
