import { expect, it } from 'vitest';
import type { RangeRow, RangeTable } from '../../data/protocol';
import { idOf, type By } from './range_tree';
import { breakdownText, type Breakdown } from './rows_text';

const ROW: RangeRow = { id: 'function/f', name: 'f', where: '', bytes: 2048, inclusive: 4096, byte_seconds: 1024.5, allocations: 1200, growth: -1024, end_bytes: 7, other: null, stack: 1 };
const KIND: RangeRow = { ...ROW, id: 'category/3', name: 'kv_cache', inclusive: null };
const table = (rows: readonly RangeRow[]): RangeTable => ({ rows, total_rows: rows.length, total: ROW, peak_event: 4, peak_ns: 40, from_ns: 30, to_ns: 90, other: null });
const flat = (by: By, rows: readonly RangeRow[], to = 9): Breakdown => ({
  query: { from: 3, to, box: null, other: null }, measure: 'bytes', levels: [by], open: new Set(), tree: { top: table(rows), inside: new Map() },
});
const TREE: Breakdown = {
  query: { from: 3, to: 9, box: null, other: null }, measure: 'bytes', levels: ['category', 'function', 'stack'], open: new Set([idOf([], KIND)]),
  tree: { top: table([KIND]), inside: new Map([[idOf([], KIND), table([ROW])]]) },
};

it('as CSV has exact numbers, and texts that no spreadsheet executes', () => {
  expect(breakdownText('csv', flat('function', [ROW, { ...ROW, name: '=1+1, "x"', inclusive: null }]))).toBe(
    'function,where,self_bytes_at_peak,inclusive_bytes_at_peak,self_byte_seconds,self_allocations,self_growth_bytes,self_end_bytes\r\n' +
      'f,,2048,4096,1024.5,1200,-1024,7\r\n' +
      '"\'=1+1, ""x""",,2048,,1024.5,1200,-1024,7\r\n',
  );
});

it('as CSV has a column for each level that is open', () => {
  expect(breakdownText('csv', TREE)).toBe(
    'category,function,where,self_bytes_at_peak,inclusive_bytes_at_peak,self_byte_seconds,self_allocations,self_growth_bytes,self_end_bytes\r\n' +
      'kv_cache,,,2048,,1024.5,1200,-1024,7\r\n' +
      'kv_cache,f,,2048,4096,1024.5,1200,-1024,7\r\n',
  );
});

it('as CSV calls columns self only if rows are frames', () => {
  expect(breakdownText('csv', flat('category', []))).toBe('category,where,bytes_at_peak,inclusive_bytes_at_peak,byte_seconds,allocations,growth_bytes,end_bytes\r\n');
});

it('as Markdown is a table for people', () => {
  expect(breakdownText('markdown', flat('function', [{ ...ROW, name: 'a|b' }]))).toBe(
    '| function | self at the peak | inclusive | self × s | self allocations | self growth |\n' +
      '| --- | ---: | ---: | ---: | ---: | ---: |\n' +
      '| a\\|b | 2.00 KiB | 4.00 KiB | 1.00 KiB·s | 1,200 | -1.00 KiB |\n',
  );
  expect(breakdownText('markdown', flat('category', [KIND], 3))).toBe('| category | bytes |\n| --- | ---: |\n| kv cache | 2.00 KiB |\n');
  expect(breakdownText('markdown', TREE)).toContain('\n| kv cache | 2.00 KiB | 2.00 KiB |');
  expect(breakdownText('markdown', TREE)).toContain('\n| &emsp;f | 2.00 KiB | 4.00 KiB |');
});

it('as JSON says which range it is of, and has rows in rows', () => {
  expect(JSON.parse(breakdownText('json', TREE))).toMatchObject({
    from: 3, to: 9, peak_event: 4, by: 'category', rows: [{ name: 'kv_cache', by: 'function', rows: [{ name: 'f', bytes: 2048 }] }],
  });
});

/** B is 2 s long, A one second. */
function compared(measure: Breakdown['measure']): Breakdown {
  const inA = { bytes: 1024, inclusive: 1024, byte_seconds: 500, allocations: 1300, growth: 0, end_bytes: 7 };
  const top: RangeTable = { ...table([{ ...ROW, other: inA }]), from_ns: 0, to_ns: 2e9, other: { total: inA, peak_event: 1, peak_ns: 10, from_ns: 0, to_ns: 1e9 } };
  return { query: { from: 3, to: 9, box: null, other: { from: 1, to: 2, box: null } }, measure, levels: ['function'], open: new Set(), tree: { top, inside: new Map() } };
}

it('as CSV has each measure of both ranges and the difference', () => {
  const [head, row] = breakdownText('csv', compared('bytes')).split('\r\n').map((line) => line.split(','));
  const of = (name: string): readonly (string | undefined)[] => ['a', 'b', 'difference'].map((part) => row![head!.indexOf(`${name}_${part}`)]);
  expect(of('self_bytes_at_peak')).toEqual(['1024', '2048', '1024']);
  expect(of('inclusive_bytes_at_peak')).toEqual(['1024', '4096', '3072']);
  expect(of('self_mean_bytes')).toEqual(['500', '512.25', '12.25']);
  expect(of('self_allocations')).toEqual(['1300', '1200', '-100']);
  expect(of('self_allocations_per_second')).toEqual(['1300', '600', '-700']);
  expect(of('self_growth_bytes')).toEqual(['0', '-1024', '-1024']);
});

it('as Markdown has the measure that is shown, of both ranges', () => {
  expect(breakdownText('markdown', compared('allocations'))).toBe(
    '| function | A: self allocs in 1.00 s | B: self allocs in 2.00 s | More than in A |\n' +
      '| --- | ---: | ---: | ---: |\n' +
      '| f | 1,300 | 1,200 | -100 |\n',
  );
});

it('as JSON has both ranges, and the differences', () => {
  expect(JSON.parse(breakdownText('json', compared('bytes')))).toMatchObject({
    from: 3, to: 9, other: { from: 1, to: 2, to_ns: 1e9, total: { bytes: 1024 } },
    rows: [{ name: 'f', bytes: 2048, other: { bytes: 1024 }, difference: { bytes_at_peak: 1024, allocations_per_second: -700 } }],
  });
});
