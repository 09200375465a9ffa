import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Json } from '../../base/json';
import type { DataSource } from '../../data/data_source';
import type { Filter } from '../../data/protocol';
import { NO_FILTER } from '../../state/state';
import { filterWords, keysOf, placeOfRow, rowTest, type Keys, type Side } from './compare_filter';
import { comparePage } from './compare_page';

const DIFF = new Json(JSON.parse(readFileSync(new URL('./fixtures/diff.json', import.meta.url), 'utf8')) as unknown);
const NO_KEYS: Keys = new Map();

/** Returns the stacks of the rows that match, as text. */
function passing(change: Partial<Filter>, side: Side = 'new', keys = NO_KEYS): string[] {
  const [section] = comparePage(DIFF, rowTest({ ...NO_FILTER, ...change }, side, keys)).sections;
  return section!.rows.slice(0, -2).map((row) => row.at(-1)!.text);
}
const ALL = passing({});

describe('rows that match the filter', () => {
  it('have its text in any frame', () => {
    expect(passing({ text: 'EMA' })).toEqual(['Ema.__init__ (ema.py:9)']);
    expect(passing({ text: '/^main$/' })).toEqual(ALL);
    expect(passing({ text: 'train.py:20' })).toContain('Ema.__init__ (ema.py:9)');
    expect(passing({ text: 'no_such_frame' })).toEqual([]);
    expect(passing({ text: '/(/' })).toEqual([]);
  });

  it('have its category, written with underscores or with spaces', () => {
    const row = new Json({ category: 'optimizer_state' });
    const fits = (category: string): boolean => rowTest({ ...NO_FILTER, category }, 'new', NO_KEYS)!(row);
    expect([fits('optimizer_state'), fits('optimizer state'), fits('gradients')]).toEqual([true, true, false]);
  });

  it('have its stack in the recording shown', () => {
    expect(passing({ stack: 32 })).toEqual(['Ema.__init__ (ema.py:9)']);
    expect(passing({ stack: 32 }, 'base')).not.toContain('Ema.__init__ (ema.py:9)');
  });

  it('have its call site, after that is known', () => {
    const rows = DIFF.list('devices')[0]!.list('rows');
    const keys: Keys = new Map(rows.map((row, i) => [placeOfRow(row), 100 + i]));
    expect(passing({ key: 100 })).toEqual(ALL);
    expect(passing({ key: 101 }, 'new', keys)).toEqual([ALL[1]]);
  });

  it('are all rows if it only has fields of single blocks', () => {
    for (const change of [{ stream: '0x7f' }, { thread: '11' }, { min_size: 4 }, {}]) expect(rowTest({ ...NO_FILTER, ...change }, 'new', NO_KEYS)).toBeNull();
  });
});

it('adds up the matching rows, beside the total of all', () => {
  const { rows } = comparePage(DIFF, rowTest({ ...NO_FILTER, text: 'ema' }, 'new', NO_KEYS)).sections[0]!;
  expect(rows.at(-2)!.map((cell) => cell.text)).toEqual(['+600 MiB', '0 B', '600 MiB', '', '', 'matching the filter: 1 changed stack']);
  expect(rows.at(-1)!.map((cell) => cell.text)).toEqual(['+1.09 GiB', '9.52 GiB', '10.6 GiB', '', '', 'total of all stacks']);
  expect(comparePage(DIFF, () => false).sections[0]!.rows[0]!.at(-1)!.text).toBe('no changed stack matches the filter');
});

it('asks each file for the keys of its own stacks', async () => {
  const asked: [number, readonly number[]][] = [];
  const source: Pick<DataSource, 'stacks'> = {
    stacks: (file, ids) => {
      asked.push([file, ids]);
      return Promise.resolve(ids.map((stack) => ({ stack, key: file * 1000 + stack, label: '', site: '', backward_of: '', line: '', frames: [] })));
    },
  };
  const rows = [{ base_id: 'stack/3', new_id: 'stack/5' }, { base_id: 'stack/4', new_id: null }, { base_id: null, new_id: null }];
  const keys = await keysOf(new Json({ devices: [{ rows }] }), source, { base: 1, new: 2 }, new AbortController().signal);
  expect(asked).toEqual([[1, [4]], [2, [5]]]);
  expect([...keys]).toEqual([['base/4', 1004], ['new/5', 2005]]);
});

it('describes what the filter selects and what it does not', () => {
  const words = (change: Partial<Filter>): string => filterWords({ ...NO_FILTER, ...change });
  expect(words({ text: 'x' })).toBe('The rows match the filter; the chart shows all memory.');
  expect(words({ stream: '1', max_size: 3 })).toBe('Rows and chart show all memory. A row contains all blocks of a stack, regardless of stream and size.');
});
