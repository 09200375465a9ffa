import { expect, it } from 'vitest';
import type { RangeTable, RangeTotal } from '../../data/protocol';
import type { Measure } from '../../data/range_measures';
import { rangeColumns, withoutArguments } from './range_columns';

const TOTAL: RangeTotal = { total: { bytes: 1, byte_seconds: 1, allocations: 1, growth: 1, end_bytes: 1 }, peak_event: 4, peak_ns: 40, from_ns: 0, to_ns: 2e9 };
const TABLE: RangeTable = { ...TOTAL, rows: [], total_rows: 0, other: { ...TOTAL, to_ns: 5e8 } };

it.each([
  ['at::empty(c10::ArrayRef<long>, at::Tensor const&)', 'at::empty'],
  ['at::(anonymous namespace)::structured_add::set_output(long)', 'at::(anonymous namespace)::structured_add::set_output'],
  ['main (train.py)', 'main (train.py)'],
  ['train.py:41', 'train.py:41'],
])('shows %s without arguments', (label, shown) => expect(withoutArguments(label)).toBe(shown));

it('calls columns of frames self, unless they are inclusive', () => {
  const titles = (by: 'function' | 'stack', kind: 'range' | 'moment' | 'compare' | 'ranges', measure: Measure = 'bytes'): string[] =>
    rangeColumns({ by, kind, measure, hasFrames: by === 'function', table: TABLE, toggle: () => undefined }).map(({ title }) => title);
  expect(titles('function', 'range')).toEqual(['Function', 'Self', 'Inclusive', 'Self × s', 'Self allocs', 'Self growth']);
  expect(titles('function', 'moment')).toEqual(['Function', 'Self', 'Inclusive']);
  expect(titles('stack', 'range')).toEqual(['Stack', 'At peak', 'Bytes × s', 'Allocs', 'Growth']);
  expect(titles('stack', 'compare')).toEqual(['Stack', 'Before', 'After', 'Growth', 'Allocs']);
  expect(titles('stack', 'ranges')).toEqual(['Stack', 'A: at peak', 'B: at peak', 'More than in A']);
  expect(titles('function', 'ranges')).toEqual(['Function', 'A: self at peak', 'B: self at peak', 'More than in A']);
  expect(titles('function', 'ranges', 'inclusive')).toEqual(['Function', 'A: inclusive', 'B: inclusive', 'More than in A']);
});

it('names the lengths of ranges if a measure depends on them', () => {
  const titles = (measure: Measure): string[] => rangeColumns({ by: 'stack', kind: 'ranges', measure, hasFrames: false, table: TABLE, toggle: () => undefined }).map(({ title }) => title);
  expect(titles('allocations')).toEqual(['Stack', 'A: allocs in 500 ms', 'B: allocs in 2.00 s', 'More than in A']);
  expect(titles('growth')).toEqual(['Stack', 'A: growth in 500 ms', 'B: growth in 2.00 s', 'More than in A']);
  expect(titles('allocation_rate')).toEqual(['Stack', 'A: allocs/s', 'B: allocs/s', 'More than in A']);
});
