import { expect, it } from 'vitest';
import type { RangeQuery, RangeRow, RangeTable } from '../../data/protocol';
import { NO_FILTER } from '../../state/state';
import { changedLevels, hasFrames, idOf, loadTree, rowsOf, toggled, type By } from './range_tree';

const LEVELS: readonly By[] = ['category', 'function', 'stack'];
const QUERY = { file: 0, lane: 0, filter: NO_FILTER, from: 0, to: 9, box: null, other: null, folded: true, sort: 'bytes', side: 'this', descending: true } as const;
const row = (id: string, inclusive: number | null = null): RangeRow => ({ id, name: id, where: '', bytes: 1, byte_seconds: 1, allocations: 1, growth: 1, end_bytes: 1, inclusive, other: null, stack: 0 });
const table = (rows: readonly RangeRow[], total = rows.length): RangeTable => ({ rows, total_rows: total, total: row(''), peak_event: 4, peak_ns: 40, from_ns: 30, to_ns: 90, other: null });
const [A, B] = [row('category/1'), row('category/2')];
const F = row('function/f', 5);
const S = row('stack/3', 5);

/** Answers as a recording with these rows, and writes down what was asked. */
function source(): { readonly ask: (query: RangeQuery) => Promise<RangeTable>; readonly asked: string[] } {
  const asked: string[] = [];
  const rows: Readonly<Record<string, readonly RangeRow[]>> = { '': [A, B], 'category/1': [F], 'category/1 function/f': [S], 'category/2': [] };
  return {
    asked,
    ask: (query) => {
      asked.push(`${query.by} in ${query.within.join(' ')}`);
      return Promise.resolve(table(rows[query.within.join(' ')] ?? []));
    },
  };
}
const named = (open: ReadonlySet<string>, tree: Awaited<ReturnType<typeof loadTree>>): string[] =>
  rowsOf(tree, LEVELS, open).map((each) => `${' '.repeat(each.parents.length)}${each.row.id}${each.isOpen ? ' -' : each.canOpen ? ' +' : ''}`);

it('asks for one table if nothing is open', async () => {
  const { ask, asked } = source();
  const tree = await loadTree(ask, QUERY, LEVELS, new Set(), false);
  expect(asked).toEqual(['category in ']);
  expect(named(new Set(), tree)).toEqual(['category/1 +', 'category/2 +']);
});

it('asks for the rows in open rows, and in those in them', async () => {
  const { ask, asked } = source();
  const open = new Set([idOf([], A), idOf([A], F), idOf([B], F)]);
  const tree = await loadTree(ask, QUERY, LEVELS, open, false);
  expect(asked).toEqual(['category in ', 'function in category/1', 'stack in category/1 function/f']);
  expect(named(open, tree)).toEqual(['category/1 -', ' function/f -', '  stack/3', 'category/2 +']);
  expect(hasFrames(rowsOf(tree, LEVELS, open))).toBe(true);
  expect(hasFrames(rowsOf(tree, LEVELS, new Set()))).toBe(false);
});

it('shows an open row whose rows have not come yet', async () => {
  const tree = await loadTree(source().ask, QUERY, LEVELS, new Set(), false);
  expect(named(new Set([idOf([], B)]), tree)).toEqual(['category/1 +', 'category/2 -']);
});

it('opens and closes rows', async () => {
  const tree = await loadTree(source().ask, QUERY, LEVELS, new Set(), false);
  const [first] = rowsOf(tree, LEVELS, new Set());
  const open = toggled(new Set(), first!);
  expect([...open]).toEqual([idOf([], A)]);
  expect([...toggled(open, first!)]).toEqual([]);
});

it('cannot open what the file left out', async () => {
  const tree = await loadTree(() => Promise.resolve(table([row('omitted')])), QUERY, LEVELS, new Set([idOf([], row('omitted'))]), false);
  expect(named(new Set([idOf([], row('omitted'))]), tree)).toEqual(['omitted']);
});

it('has the rows of all pages if it is to be whole', async () => {
  const rows = Array.from({ length: 1203 }, (_, i) => row(`stack/${i}`));
  const ask = (query: RangeQuery): Promise<RangeTable> => Promise.resolve(table(rows.slice(query.offset, query.offset + query.limit), rows.length));
  expect((await loadTree(ask, QUERY, ['stack'], new Set(), true)).top.rows).toEqual(rows);
  expect((await loadTree(ask, QUERY, ['stack'], new Set(), false)).top.rows).toHaveLength(500);
});

it('adds, leaves out and moves levels, and keeps one', () => {
  expect(changedLevels(LEVELS, 'line', 'toggle')).toEqual(['category', 'function', 'stack', 'line']);
  expect(changedLevels(LEVELS, 'category', 'toggle')).toEqual(['function', 'stack']);
  expect(changedLevels(['line'], 'line', 'toggle')).toEqual(['line']);
  expect(changedLevels(LEVELS, 'stack', 'up')).toEqual(['category', 'stack', 'function']);
  expect(changedLevels(LEVELS, 'category', 'down')).toEqual(['function', 'category', 'stack']);
  expect(changedLevels(LEVELS, 'category', 'up')).toEqual(LEVELS);
  expect(changedLevels(LEVELS, 'stack', 'down')).toEqual(LEVELS);
  expect(changedLevels(LEVELS, 'thread', 'up')).toEqual(LEVELS);
});
