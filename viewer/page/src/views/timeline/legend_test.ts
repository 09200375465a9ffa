import { expect, it } from 'vitest';
import { shortName } from './legend';

it('names call sites in short, by what differs', () => {
  expect(shortName('Block.forward (train_gpt.py)')).toBe('Block.forward (train_gpt.py)');
  expect(shortName('backward of Block.forward (train_gpt.py:45) > Linear.forward (linear.py:134)')).toBe('backward of Block.forward > Linear.forward');
  expect(shortName(`f (a.py) > ${'g'.repeat(60)}`)).toBe(`f > ${'g'.repeat(37)}…`);
});
