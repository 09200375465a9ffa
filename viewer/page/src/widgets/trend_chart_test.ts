import { expect, it } from 'vitest';
import { fittedTrend, type Trend } from './trend_chart';

const LEAK: Trend = {
  title: '', values: [100, 40, 50, 60, 70], stepsPerValue: 2, fitFrom: 4, perStep: 5, low: 4, high: 6, stepsToFull: null, capacity: null,
};

it('fits the points after the beginning', () => {
  const { points, from, last, fit } = fittedTrend(LEAK);
  expect(points.map(([step]) => step)).toEqual([2, 4, 6, 8, 10]);
  expect(from).toEqual([4, 40]);
  expect([last, fit(10), fit(12)]).toEqual([10, 70, 80]);
});

it('opens the interval at the last step', () => {
  const { fit } = fittedTrend(LEAK);
  expect([fit(10, LEAK.low), fit(10, LEAK.high)]).toEqual([70, 70]);
  expect(fit(20, LEAK.low)).toBeLessThan(fit(20, LEAK.high));
});

it('ends the forecast when the device is full', () => {
  expect(fittedTrend({ ...LEAK, stepsToFull: 3 }).until).toBe(13);
  expect(fittedTrend({ ...LEAK, stepsToFull: 1e9 }).until).toBe(14);
});

it('forecasts nothing of what may not grow', () => {
  const { until, last } = fittedTrend({ ...LEAK, perStep: 0, low: -1, high: 1 });
  expect(until).toBe(last);
});

it('is not misled by an outlier', () => {
  expect(fittedTrend({ ...LEAK, values: [100, 40, 50, 900, 70, 80, 90] }).fit(14)).toBe(90);
});
