import { expect, it } from 'vitest';
import { rangeColumns, withoutArguments } from './range_columns';

it.each([
  ['at::empty(c10::ArrayRef<long>, at::Tensor const&)', 'at::empty'],
  ['at::(anonymous namespace)::structured_add::set_output(long)', 'at::(anonymous namespace)::structured_add::set_output'],
  ['main (train.py)', 'main (train.py)'],
  ['train.py:41', 'train.py:41'],
])('shows %s without arguments', (label, shown) => expect(withoutArguments(label)).toBe(shown));

it('calls columns of frames self, unless they are inclusive', () => {
  const total = { bytes: 1, byte_seconds: 1, allocations: 1, growth: 1, end_bytes: 1 };
  const titles = (by: 'function' | 'stack', kind: 'range' | 'moment' | 'compare'): string[] =>
    rangeColumns({ by, kind, hasFrames: by === 'function', total, toggle: () => undefined }).map(({ title }) => title);
  expect(titles('function', 'range')).toEqual(['Function', 'Self', 'Inclusive', 'Self × s', 'Self allocs', 'Self growth']);
  expect(titles('function', 'moment')).toEqual(['Function', 'Self', 'Inclusive']);
  expect(titles('stack', 'range')).toEqual(['Stack', 'At peak', 'Bytes × s', 'Allocs', 'Growth']);
  expect(titles('stack', 'compare')).toEqual(['Stack', 'Before', 'After', 'Growth', 'Allocs']);
});
