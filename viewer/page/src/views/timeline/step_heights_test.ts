import { expect, it } from 'vitest';
import { Random } from '../../testing/random';
import { forEachSeed } from '../../testing/seeds';
import { StepHeights } from './step_heights';

it('equals adding up column by column', () => {
  forEachSeed([1], (seed) => {
    const random = new Random(seed);
    for (const columns of [1, 31, 32, 33, 700]) {
      const fast = new StepHeights(columns);
      const slow = new Float64Array(columns);
      for (let round = 0; round < 400; ++round) {
        const first = random.below(columns);
        const last = first + 1 + random.below(columns - first);
        const by = (random.below(3) - 1) * 2 ** random.below(40);
        fast.raise(first, last, by);
        for (let c = first; c < last; ++c) slow[c]! += by;
        const [from, to] = [first, Math.min(columns, first + 1 + random.below(columns))];
        const seen = new Float64Array(columns).fill(NaN);
        let before = NaN;
        fast.walk(from, to, (begin, end, height) => {
          expect(height).not.toBe(before);
          before = height;
          seen.fill(height, begin, end);
        });
        expect([...seen.slice(from, to)]).toEqual([...slow.slice(from, to)]);
        expect(fast.at(first)).toBe(slow[first]);
      }
    }
  });
});
