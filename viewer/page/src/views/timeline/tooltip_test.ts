import { describe, expect, it } from 'vitest';
import { isSampledIn } from '../../data/columns';
import type { CurveTile } from '../../data/protocol';
import { countersAt, largestWords } from './tooltip';

const curve: CurveTile = {
  window: { file: 0, lane: 0, axis: 'time', from: 0, to: 4e9, columns: 4 },
  event: Uint32Array.of(1, 2, 3, 4), peak: Uint32Array.of(1, 2, 3, 4), ns: Float64Array.of(0.5e9, 1.5e9, 2.5e9, 3.5e9),
  series: new Map(), categories: new Float64Array(0),
  samples: new Map([['process_used', { value: Float64Array.of(NaN, 1024, 1024, 2048), ns: Float64Array.of(NaN, 1.2e9, 1.2e9, 3.9e9) }]]),
};

it('names the largest of the blocks that are drawn as a sum, once it is known', () => {
  expect(largestWords(null)).toEqual([]);
  expect(largestWords({ row: 1, bytes: 64 * 1024 ** 2, name: 'GPT.forward' })).toEqual(['largest: 64.0 MiB  GPT.forward']);
});

describe('a sample', () => {
  it('is described with its age', () => {
    const words = [0.1e9, 1.1e9, 2.1e9, 3.1e9].map((position) => countersAt({ curve }, position));
    expect(words).toEqual([
      [], ['process used 1.00 KiB, sampled here'], ['process used 1.00 KiB, sampled 1.30 s earlier'], ['process used 2.00 KiB, sampled here'],
    ]);
  });
  it('is drawn once, where it was taken', () => {
    const { ns } = curve.samples.get('process_used')!;
    expect([0, 1, 2, 3].map((column) => isSampledIn(ns, column))).toEqual([false, true, false, true]);
    expect(isSampledIn(Float64Array.of(5), 0)).toBe(true);
  });
});
