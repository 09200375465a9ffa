import { expect, it } from 'vitest';
import { scaleOf, type BarPart } from './stacked_bar';

const PARTS: readonly BarPart[] = [
  { name: 'live', bytes: 60, hue: 'blue' },
  { name: 'cached', bytes: 40, hue: 'silver' },
];

it('has room for a mark beyond the parts', () => {
  const { top, near, far } = scaleOf(PARTS, [{ name: 'capacity', bytes: 240 }]);
  expect(top).toBeGreaterThanOrEqual(240);
  expect([near.length, far.length]).toEqual([1, 0]);
});

it('is not filled up by a mark that is far away', () => {
  const capacity = { name: 'capacity', bytes: 8000 };
  const { top, near, far } = scaleOf(PARTS, [{ name: 'reserved', bytes: 100 }, capacity]);
  expect(top).toBeLessThan(110);
  expect([near.map(({ name }) => name), far]).toEqual([['reserved'], [capacity]]);
});

it('is never empty', () => expect(scaleOf([], []).top).toBeGreaterThan(0));
