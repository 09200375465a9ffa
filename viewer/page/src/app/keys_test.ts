import { expect, it } from 'vitest';
import { keepsKey } from './keys';

const kept = (field: string, ...keys: readonly string[]): boolean[] => keys.map((key) => keepsKey(field, { key }));

it('leaves all keys to a text field', () => {
  for (const field of ['text', 'search', 'select', 'number']) expect(kept(field, 'w', '1', 'ArrowLeft', ' ')).toEqual([true, true, true, true]);
});

it('takes letters and digits while a check box or a slider has the focus, and leaves it its own keys', () => {
  expect(kept('checkbox', 'w', '1', 'ArrowLeft', ' ')).toEqual([false, false, false, true]);
  expect(kept('range', 'w', '1', 'ArrowLeft', 'Home')).toEqual([false, false, true, true]);
});

it('takes every key elsewhere', () => expect(kept('', 'w', ' ', 'Home')).toEqual([false, false, false]));
