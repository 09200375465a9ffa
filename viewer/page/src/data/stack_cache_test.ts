import { describe, expect, it } from 'vitest';
import type { StackInfo } from './protocol';
import { siteLabelOf } from './stack_cache';

function info(stack: number, site: string, line: string): StackInfo {
  return { stack, key: 1, label: line, site, line, backward_of: 'backward of ', frames: [] };
}

const STACKS = new Map([
  [1, info(1, 'main (train.py)', 'main (train.py:20)')],
  [2, info(2, 'main (train.py)', 'main (train.py:30)')],
  [3, info(3, 'MLP.forward (gpt.py)', 'MLP.forward (gpt.py:88)')],
  [9, info(9, 'AddmmBackward0', 'AddmmBackward0')],
]);
const labelOf = (...stacks: (readonly [number, number])[]): string | null => siteLabelOf((stack) => STACKS.get(stack) ?? null, stacks);

describe('the label of a call site', () => {
  it('is that of its stacks, without their lines', () => {
    expect(labelOf([1, 0])).toBe('main (train.py)');
  });
  it('of a backward pass names the forward pass', () => {
    expect(labelOf([9, 1])).toBe('backward of main (train.py:20)');
    expect(labelOf([9, 1], [9, 0])).toBe('backward of main (train.py:20)');
    expect(labelOf([9, 1], [9, 2])).toBe('backward of main (train.py)');
    expect(labelOf([9, 3], [9, 1], [9, 2])).toBe('backward of MLP.forward (gpt.py) and 1 more');
  });
  it('is not known before all of its stacks are', () => {
    expect([labelOf([9, 4]), labelOf([4, 0]), labelOf([9, 1], [9, 4]), labelOf()]).toEqual([null, null, null, null]);
  });
});
