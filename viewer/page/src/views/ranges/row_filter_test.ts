import { expect, it } from 'vitest';
import type { RangeQuery, RangeRow } from '../../data/protocol';
import { NO_FILTER } from '../../state/state';
import type { By } from './range_tree';
import { filterOfPath, filterOfRow, has, without } from './row_filter';

const of = (by: RangeQuery['by'], name: string, row: Partial<RangeRow> = {}): unknown =>
  filterOfRow(by, { id: `${by}/${name}`, name, stack: 0, ...row } as RangeRow);

it('filters by the field that rows are grouped by', () => {
  expect(of('category', 'gradients')).toEqual({ category: 'gradients' });
  expect(of('stream', 'unknown')).toEqual({ stream: 'unknown' });
  expect(of('stack', 'main', { id: 'stack/7' })).toEqual({ stack: 7, forward_stack: null });
  expect(of('stack', 'backward of main', { id: 'stack/7+9' })).toEqual({ stack: 7, forward_stack: 9 });
  expect(of('role', 'a parameter')).toEqual({ text: 'a parameter' });
  expect(of('dtype', 'bfloat16')).toEqual({ text: 'bfloat16 [' });
  expect(of('dtype', 'unknown')).toBeNull();
  expect(of('line', 'train.py:41')).toEqual({ text: 'train.py:41' });
  expect(of('module', 'libtorch.so')).toEqual({ text: 'libtorch.so' });
});

it('finds a Python package by its folder', () => expect(of('module', 'torch')).toEqual({ text: '-packages/torch/' }));

it('filters by "no stack" for blocks without one, and not at all if no filter is right', () => {
  expect(of('function', 'unknown')).toEqual({ stack: 0 });
  expect(of('function', 'unknown', { stack: 7 })).toBeNull();
  expect(of('category', 'left out of this file', { id: 'omitted' })).toBeNull();
});

it('filters by all rows that a row is in', () => {
  const path = (...rows: readonly (readonly [By, string])[]): unknown => {
    const made = rows.map(([by, name]) => ({ id: by === 'stack' ? name : `${by}/${name}`, name, stack: 1 }) as RangeRow);
    const levels = rows.map(([by]) => by);
    return filterOfPath({ row: made.at(-1)!, by: levels.at(-1)!, parents: made.slice(0, -1), canOpen: false, isOpen: false }, levels);
  };
  expect(path(['category', 'gradients'], ['thread', '7'])).toEqual({ category: 'gradients', thread: '7' });
  expect(path(['category', 'gradients'], ['module', 'torch'], ['line', 'a.py:3'])).toEqual({ category: 'gradients', text: 'a.py:3' });
  expect(path(['function', 'unknown'], ['stack', 'stack/7'])).toEqual({ stack: 7, forward_stack: null });
  expect(path(['function', 'f (a.py)'], ['stream', '0x1'])).toEqual({ text: 'f (a.py)', stream: '0x1' });
  expect(path(['dtype', 'bfloat16'], ['function', 'f (a.py)'])).toBeNull();
  expect(path(['role', 'a parameter'], ['dtype', 'bfloat16'])).toBeNull();
});

it('sets and unsets its fields only', () => {
  const filter = { ...NO_FILTER, text: 'a', stack: 7 };
  expect([has(filter, { stack: 7 }), has(filter, { stack: 8 })]).toEqual([true, false]);
  expect(without(filter, { stack: 7 })).toEqual({ ...NO_FILTER, text: 'a' });
});
