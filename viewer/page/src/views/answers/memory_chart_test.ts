import { describe, expect, it } from 'vitest';
import type { CurveTile } from '../../data/protocol';
import { memoryOf } from './memory_chart';

const series = (...max: number[]): { min: Float64Array; max: Float64Array; mid: Float64Array } => {
  const values = Float64Array.from(max);
  return { min: values, max: values, mid: values };
};

const curve: CurveTile = {
  window: { file: 0, lane: 0, axis: 'time', from: 0, to: 3e9, columns: 3 },
  event: Uint32Array.of(1, 2, 3), peak: Uint32Array.of(1, 2, 3), ns: Float64Array.of(0.5e9, 1.5e9, 2.5e9),
  series: new Map([['live', series(30, 50, NaN)], ['reserved', series(64, 128, 128)]]),
  categories: Float64Array.of(10, 20, 0, 20, 30, NaN),
  samples: new Map([['driver_used', { value: Float64Array.of(NaN, 300, 300), ns: Float64Array.of(NaN, 1.2e9, 1.2e9) }]]),
};
const NAMES = ['parameters', 'optimizer_state'];

describe('memory over time', () => {
  it('is what is live at the peak of each column, by category, below what is reserved', () => {
    const { layers, lines } = memoryOf(curve, NAMES, false);
    expect(layers.map(({ name, values }) => [name, values])).toEqual([['parameters', [10, 20, 0]], ['optimizer state', [20, 30, 0]]]);
    expect(lines.map(({ name, values }) => [name, [...Array.from(values)]])).toEqual([['reserved, at most 128 B', [64, 128, 128]]]);
  });

  it('has a point for each sample of the driver, only where it was taken', () => {
    const [, driver] = memoryOf(curve, NAMES, true).lines;
    expect(driver).toMatchObject({ isSampled: true });
    expect(Array.from(driver!.values)).toEqual([NaN, 300, NaN]);
  });

  it('is one layer until categories are known', () => {
    const { layers } = memoryOf({ ...curve, categories: new Float64Array(0) }, NAMES, false);
    expect(layers.map(({ name, values }) => [name, values])).toEqual([['live', [30, 50, 0]]]);
  });
});
