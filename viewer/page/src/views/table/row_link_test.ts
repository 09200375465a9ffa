import { expect, it } from 'vitest';
import type { TableRow } from '../../data/protocol';
import { INITIAL_STATE } from '../../state/state';
import { onlyRow, onlyWords, selectionOf, splitId } from './row_link';

const row = (id: string, name = '', stack = 0): TableRow => ({ id, name, stack }) as TableRow;
const filterOf = (id: string, name = ''): unknown => onlyRow(INITIAL_STATE, row(id, name))?.filter;

it('splits at the first slash', () => expect(splitId('file/a/b.py')).toEqual(['file', 'a/b.py']));

it('selects a block, or the stack of a row', () => {
  expect(selectionOf(row('block/12'))).toEqual({ kind: 'block', row: 12 });
  expect(selectionOf(row('category/3', 'gradients', 9))).toEqual({ kind: 'stack', stack: 9 });
  expect(selectionOf(row('category/3'))).toEqual({ kind: 'none' });
});

it('filters by the field that rows are grouped by', () => {
  expect(filterOf('stack/7')).toMatchObject({ stack: 7, forward_stack: null });
  expect(filterOf('stack/7+9')).toMatchObject({ stack: 7, forward_stack: 9 });
  expect(filterOf('category/3', 'gradients')).toMatchObject({ category: 'gradients' });
  expect(filterOf('stream/1', '0x7f')).toMatchObject({ stream: '0x7f' });
  expect(filterOf('file/a.py', 'a.py')).toMatchObject({ text: 'a.py' });
  expect(filterOf('size/512')).toMatchObject({ min_size: 512, max_size: 512 });
  expect(filterOf('size/512-1023')).toMatchObject({ min_size: 512, max_size: 1023 });
});

it('filters by a function or a file as text, and the button says so', () => {
  expect(filterOf('function/forward (a.py)', 'forward (a.py)')).toMatchObject({ text: 'forward (a.py)', stack: null });
  expect(onlyWords(row('function/forward (a.py)'))).toContain('through');
  expect(onlyWords(row('category/3'))).not.toContain('through');
});

it('filters by "no stack" for blocks without one, and not at all if no filter is right', () => {
  expect(filterOf('function/unknown', 'unknown')).toMatchObject({ text: '', stack: 0 });
  expect(onlyRow(INITIAL_STATE, row('file/unknown', 'unknown', 7))).toBeNull();
  expect(onlyRow(INITIAL_STATE, row('omitted', 'left out of this file'))).toBeNull();
});
