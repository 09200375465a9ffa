import { expect, it } from 'vitest';
import { NO_FILTER } from '../state/state';
import { chipsOf, placeIn } from './filter_bar';

it('shows no chips for an empty filter', () => expect(chipsOf(NO_FILTER)).toEqual([]));

it('shows every field that is set, zeros too', () => {
  const labels = chipsOf({
    text: 'seen in its field',
    category: 'activations',
    stack: 0,
    forward_stack: 9,
    key: 255,
    stream: '0x0',
    thread: '11',
    min_size: 0,
    max_size: 2 ** 20,
  }).map((chip) => chip.label);
  expect(labels).toEqual([
    'category activations',
    'stack 0',
    'backward of stack 9',
    'call site ff',
    'stream 0x0',
    'thread 11',
    'at least 0 B',
    'at most 1.00 MiB',
  ]);
});

it('names a stack by its line of code, if that is known', () => {
  const filter = { ...NO_FILTER, stack: 1571 };
  const stack = { stack: 1571, key: 1, label: 'step (leak_train.py:11) > relu', site: '', backward_of: '', line: '', frames: [] };
  expect(chipsOf(filter, placeIn(stack)).map(({ label }) => label)).toEqual(['leak_train.py:11']);
  for (const label of ['', 'at::empty', 'libtorch.so']) expect(placeIn({ ...stack, label })).toBe('');
  expect(placeIn(undefined)).toBe('');
});
