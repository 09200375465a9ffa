import { expect, it } from 'vitest';
import type { RangeQuery, RangeRow, RangeTable } from '../../data/protocol';
import { NO_FILTER } from '../../state/state';
import { allRows } from './breakdown_panel';
import { breakdownText } from './rows_text';

const QUERY: RangeQuery = { file: 0, lane: 0, filter: NO_FILTER, from: 3, to: 9, by: 'function', folded: true, sort: 'bytes', descending: true, offset: 0, limit: 500 };
const ROW: RangeRow = { id: 'function/f', name: 'f', where: '', bytes: 2048, inclusive: 4096, byte_seconds: 1024.5, allocations: 1200, growth: -1024, stack: 1 };
const table = (rows: readonly RangeRow[]): RangeTable => ({ rows, total_rows: rows.length, total: ROW, peak_event: 4, peak_ns: 40, from_ns: 30, to_ns: 90 });

it('as CSV has exact numbers, and texts that no spreadsheet executes', () => {
  expect(breakdownText('csv', QUERY, table([ROW, { ...ROW, name: '=1+1, "x"', inclusive: null }]))).toBe(
    'function,where,self_bytes_at_peak,inclusive_bytes_at_peak,self_byte_seconds,self_allocations,self_growth_bytes\r\n' +
      'f,,2048,4096,1024.5,1200,-1024\r\n' +
      '"\'=1+1, ""x""",,2048,,1024.5,1200,-1024\r\n',
  );
});

it('as Markdown is a table for people', () => {
  expect(breakdownText('markdown', QUERY, table([{ ...ROW, name: 'a|b' }]))).toBe(
    '| function | self at the peak | inclusive | self × s | self allocations | self growth |\n' +
      '| --- | ---: | ---: | ---: | ---: | ---: |\n' +
      '| a\\|b | 2.00 KiB | 4.00 KiB | 1.00 KiB·s | 1,200 | -1.00 KiB |\n',
  );
  const moment = breakdownText('markdown', { ...QUERY, to: 3, by: 'category' }, table([{ ...ROW, name: 'kv_cache', inclusive: null }]));
  expect(moment).toBe('| category | bytes |\n| --- | ---: |\n| kv cache | 2.00 KiB |\n');
});

it('as CSV calls columns self only if rows are frames', () => {
  expect(breakdownText('csv', { ...QUERY, by: 'category' }, table([]))).toBe(
    'category,where,bytes_at_peak,inclusive_bytes_at_peak,byte_seconds,allocations,growth_bytes\r\n',
  );
});

it('as JSON says which range it is of', () => {
  const parsed = JSON.parse(breakdownText('json', QUERY, table([ROW]))) as object;
  expect(parsed).toMatchObject({ from: 3, to: 9, peak_event: 4, by: 'function', rows: [{ name: 'f', bytes: 2048 }] });
});

it('has the rows of all pages', async () => {
  const rows = Array.from({ length: 1203 }, (_, i) => ({ ...ROW, id: `stack/${i}` }));
  const range = (query: RangeQuery): Promise<RangeTable> =>
    Promise.resolve({ ...table(rows), rows: rows.slice(query.offset, query.offset + query.limit) });
  expect((await allRows({ range }, QUERY)).rows).toEqual(rows);
});
