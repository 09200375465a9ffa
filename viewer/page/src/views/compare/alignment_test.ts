import { describe, expect, it } from 'vitest';
import type { CurveTile, FileMeta } from '../../data/protocol';
import { align, pairWords, resample, stepNumber } from './alignment';

const A = { events: 100, end_ns: 1000, steps: { begin: [10, 20, 60], end: [20, 60, 100] } } as unknown as FileMeta;
const B = { events: 50, end_ns: 5000, steps: { begin: [10, 20, 30], end: [20, 30, 50] } } as unknown as FileMeta;

function tileOf(events: number, live: readonly number[]): CurveTile {
  const values = Float64Array.from(live);
  return {
    window: { file: 0, lane: 0, axis: 'event', from: 0, to: events, columns: live.length },
    event: new Uint32Array(live.length),
    peak: new Uint32Array(live.length),
    ns: new Float64Array(live.length),
    series: new Map([['live', { min: values, max: values, mid: values }]]),
    samples: new Map(),
    categories: new Float64Array(0),
  };
}

describe('aligned steps', () => {
  const alignment = align({ aligned_by: 'step', steps: [[10, 20], [20, 30]] }, [A, B]);

  it('begin at whole positions on both sides', () => {
    expect([alignment.from, alignment.to]).toEqual([-1, 3]);
    expect([-1, 0, 1, 2, 3].map((position) => alignment.own(position, 0))).toEqual([0, 10, 20, 60, 100]);
    expect([-1, 0, 1, 2, 3].map((position) => alignment.own(position, 1))).toEqual([0, 20, 30, 50, 50]);
  });

  it('are labelled at their midpoints, but not all if there are many', () => {
    expect(alignment.ticks).toEqual([-1, 0.5, 1.5, 3]);
    const many = align({ aligned_by: 'step', steps: Array.from({ length: 100 }, () => [10, 20] as const) }, [A, B]);
    expect(many.ticks.slice(0, 3)).toEqual([-1, 0.5, 9.5]);
  });

  it('are stretched in between', () => {
    expect(alignment.own(0.5, 0)).toBe(15);
    expect(alignment.own(0.5, 1)).toBe(25);
    expect(alignment.own(-0.5, 1)).toBe(10);
  });

  it('never run backwards', () => {
    for (const side of [0, 1] as const) {
      let last = -1;
      for (let x = -1; x <= 3; x += 0.01) {
        expect(alignment.own(x, side)).toBeGreaterThanOrEqual(last);
        last = alignment.own(x, side);
      }
    }
  });

  it('show the same step of both in the same column', () => {
    const curve = (side: 0 | 1, live: number[]): number[] => [...resample(tileOf(side === 0 ? 100 : 50, live), alignment, side, 4).max];
    expect(curve(0, [1, 2, 3, 3, 3, 3, 4, 4, 4, 4])).toEqual([1, 2, 3, 4]);
    expect(curve(1, [1, 1, 2, 3, 3])).toEqual([1, 2, 3, NaN]);
  });
});

it('ends each curve with its recording, without steps', () => {
  const alignment = align({ aligned_by: 'time', steps: [] }, [A, B]);
  expect([alignment.from, alignment.to]).toEqual([0, 5000]);
  const curve = resample(tileOf(1000, [7, 8]), alignment, 0, 5);
  expect([...curve.max]).toEqual([8, NaN, NaN, NaN, NaN]);
  expect([...curve.min]).toEqual([7, NaN, NaN, NaN, NaN]);
});

it('names steps by their numbers in both recordings', () => {
  const words = (position: number): string => pairWords({ steps: [[10, 10], [20, 30]] }, [A, B], position);
  expect([-0.5, 0, 0.9, 1, 2.1].map(words)).toEqual(['before', 'step 1', 'step 1', 'step 2 / 3', 'after']);
  expect(stepNumber(A, 20)).toBe(2);
  expect(stepNumber(A, 21)).toBeNull();
});
