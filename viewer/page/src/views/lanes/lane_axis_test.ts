import { describe, expect, it } from 'vitest';
import type { FileMeta } from '../../data/protocol';
import { alignmentsOf, laneAxis, momentWords } from './lane_axis';

const DAY = 86_400_000_000_000n;
const START = 1_764_230_400_000_000_000n;

/** A recording that begins `start` ns after START and lasts `end_ns`. */
function recording(file: number, start: bigint | null, end_ns: number, steps = 0): FileMeta {
  const begin = Array.from({ length: steps }, (_, i) => 10 * i);
  return {
    file, name: `r${file}.gmt`, start_unix_ns: start === null ? '0' : String(START + start), end_ns, events: 10 * steps,
    steps: { source: steps > 0 ? 'marks' : '', inferred: false, begin, end: begin.map((event) => event + 10), begin_ns: begin, end_ns: begin },
  } as unknown as FileMeta;
}

describe('the alignment of lanes', () => {
  const ranks = [recording(0, 2_000n, 9_000, 3), recording(1, 500n, 8_000, 4)];

  it('is by the clock if all recordings were in progress at some moment', () => {
    const axis = laneAxis(ranks, null);
    expect(axis).toMatchObject({ align: 'clock', axis: 'time', domain: { from: 0, to: 10_500 }, first: START + 500n });
    expect(ranks.map(axis.shiftOf)).toEqual([1_500, 0]);
  });
  it('by the clock counts from the beginning of the first recording, however many others are loaded', () => {
    const earlier = [...ranks, recording(2, -3_000n, 9_000)];
    const [two, three] = [laneAxis(ranks, 'clock'), laneAxis(earlier, 'clock')];
    expect([two.base, three.base]).toEqual([1_500, 5_000]);
    for (const axis of [two, three]) expect(axis.shiftOf(ranks[0]!)! - axis.base).toBe(0);
  });
  it('is otherwise from the beginning of each', () => {
    const later = [...ranks, recording(2, DAY, 12_000)];
    const axis = laneAxis(later, null);
    expect(axis).toMatchObject({ align: 'start', domain: { from: 0, to: 12_000 }, first: null });
    expect(later.map((file) => Math.abs(axis.shiftOf(file)!))).toEqual([0, 0, 0]);
    // As near as that, they still did not overlap.
    expect(laneAxis([recording(0, 0n, 999), recording(1, 1_000n, 10)], null).align).toBe('start');
    expect(laneAxis([recording(0, 0n, 1_000), recording(1, 1_000n, 10)], null).align).toBe('clock');
  });
  it('is the one that was chosen, if it is possible', () => {
    expect(laneAxis([...ranks, recording(2, DAY, 12_000)], 'clock').domain).toEqual({ from: 0, to: Number(DAY) - 500 + 12_000 });
    expect(laneAxis(ranks, 'step')).toMatchObject({ axis: 'step', domain: { from: 0, to: 5 } });
    expect(laneAxis([recording(0, null, 7)], 'step').align).toBe('start');
    expect(laneAxis([ranks[0]!, recording(1, null, 7)], 'clock').align).toBe('start');
  });
  it('by steps leaves out recordings without steps', () => {
    const files = [ranks[0]!, recording(1, 0n, 7)];
    expect(files.map(laneAxis(files, 'step').shiftOf)).toEqual([0, null]);
  });
  it('of a running process begins with its window', () => {
    const live = { ...recording(0, 0n, 9_000), live: { begin_ns: 4_000 } } as unknown as FileMeta;
    expect(laneAxis([live], null)).toMatchObject({ align: 'start', domain: { from: 0, to: 5_000 } });
    expect(laneAxis([live], null).shiftOf(live)).toBe(-4_000);
  });
  it('can be chosen unless something is missing, which is named', () => {
    const why = (files: readonly FileMeta[]): unknown => alignmentsOf(files).map(([align, , reason]) => [align, reason]);
    expect(why(ranks)).toEqual([['clock', ''], ['start', ''], ['step', '']]);
    expect(why([recording(0, null, 7), recording(1, 0n, 7)])).toEqual([['clock', 'not all start times are known'], ['start', ''], ['step', 'no steps were found']]);
    expect(why([ranks[0]!])).toEqual([['start', ''], ['step', '']]);
  });
});

it('a moment by the clock also has the time of day', () => {
  expect(momentWords(laneAxis([recording(0, 0n, 9e9), recording(1, 0n, 9e9)], 'clock'), 1.5e9, 1e6)).toMatch(/^1\.500 s \(\d\d:\d\d:01\.500\)$/);
  expect(momentWords(laneAxis([recording(0, 0n, 9e9)], null), 1.5e9, 1e6)).toBe('1.500 s');
  expect(momentWords(laneAxis([recording(0, 0n, 9e9, 3)], 'step'), 2.25, 0.01)).toBe('step 2.25');
});
