import { expect, it } from 'vitest';
import type { CurveTile } from '../../data/protocol';
import { fittedTop, topOf } from './fitted_top';

const max = Float64Array.of(1e6, 2e6, 8e6, 100, NaN);
const curve: CurveTile = {
  window: { file: 0, lane: 0, axis: 'event', from: 0, to: 5, columns: 5 },
  event: new Uint32Array(5), peak: new Uint32Array(5), ns: new Float64Array(5), samples: new Map(), categories: new Float64Array(0),
  series: new Map([['live', { min: max, max, mid: max }]]),
};
const [PEAK, TOP] = [8e6, 8.5e6];

it('is as high as what the range shows needs, in steps of two', () => {
  expect(fittedTop(curve, { from: 0, to: 4 }, TOP, PEAK)).toBe(TOP);
  expect(fittedTop(curve, { from: 0, to: 1.5 }, TOP, PEAK)).toBe(TOP / 4);
  expect(fittedTop(curve, { from: 0, to: 0.5 }, TOP, PEAK)).toBe(TOP / 8);
  expect(fittedTop(curve, { from: 3.1, to: 3.2 }, TOP, PEAK)).toBeGreaterThanOrEqual(1024);
});

it('has room for what is or would be reserved if the peak is shown', () => {
  const lane = { peak_bytes: PEAK, peak_reserved_bytes: 1.9 * PEAK };
  expect(topOf(lane)).toBeGreaterThan(1.9 * PEAK);
  expect(topOf(lane, 4 * PEAK)).toBeGreaterThan(4 * PEAK);
  expect(topOf({ ...lane, peak_reserved_bytes: null })).toBeLessThan(1.1 * PEAK);
  expect(fittedTop(curve, { from: 0, to: 4 }, topOf(lane), PEAK)).toBe(topOf(lane));
});

it('leaves half of the height to the blocks if far more is reserved, unless that is to be compared', () => {
  const lane = { peak_bytes: PEAK, peak_reserved_bytes: 7 * PEAK };
  expect(topOf(lane)).toBeLessThan(2.2 * PEAK);
  expect(topOf(lane, PEAK)).toBeGreaterThan(7 * PEAK);
});

it('is everything where the curve does not know it', () => {
  expect(fittedTop(curve, { from: 3, to: 5 }, TOP, PEAK)).toBe(TOP);
  expect(fittedTop(curve, { from: -1, to: 1 }, TOP, PEAK)).toBe(TOP);
});
