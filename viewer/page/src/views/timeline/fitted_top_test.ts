import { expect, it } from 'vitest';
import type { CurveTile } from '../../data/protocol';
import { fittedTop } from './fitted_top';

const max = Float64Array.of(1e6, 2e6, 8e6, 100, NaN);
const curve: CurveTile = {
  window: { file: 0, lane: 0, axis: 'event', from: 0, to: 5, columns: 5 },
  event: new Uint32Array(5), peak: new Uint32Array(5), ns: new Float64Array(5), samples: new Map(), categories: new Float64Array(0),
  series: new Map([['live', { min: max, max, mid: max }]]),
};
const TOP = 8.5e6;

it('is as high as what the range shows needs, in steps of two', () => {
  expect(fittedTop(curve, { from: 0, to: 4 }, TOP)).toBe(TOP);
  expect(fittedTop(curve, { from: 0, to: 1.5 }, TOP)).toBe(TOP / 4);
  expect(fittedTop(curve, { from: 0, to: 0.5 }, TOP)).toBe(TOP / 8);
  expect(fittedTop(curve, { from: 3.1, to: 3.2 }, TOP)).toBeGreaterThanOrEqual(1024);
});

it('is everything where the curve does not know it', () => {
  expect(fittedTop(curve, { from: 3, to: 5 }, TOP)).toBe(TOP);
  expect(fittedTop(curve, { from: -1, to: 1 }, TOP)).toBe(TOP);
});
