// The breakdown as a file: CSV and JSON for programs, Markdown for people. All have the rows of the
// tree; CSV has a column for each level.

import { formatBytes, formatCount, formatDelta } from '../../base/format_bytes';
import { words } from '../../base/words';
import type { RangeMeasures, RangeQuery, RangeRow, RangeTable } from '../../data/protocol';
import type { Measure } from '../../data/range_measures';
import { bothOf, comparedColumns } from './compared';
import { hasFrames, idOf, rowsOf, type By, type Tree, type TreeRow } from './range_tree';

export type Format = 'csv' | 'markdown' | 'json';

export const FORMATS: Readonly<Record<Format, { readonly title: string; readonly ending: string; readonly type: string }>> = {
  csv: { title: 'CSV', ending: 'csv', type: 'text/csv' },
  markdown: { title: 'Markdown', ending: 'md', type: 'text/markdown' },
  json: { title: 'JSON', ending: 'json', type: 'application/json' },
};

export interface Breakdown {
  readonly query: Pick<RangeQuery, 'from' | 'to' | 'box' | 'other'>;
  readonly measure: Measure; // that is shown of two ranges
  readonly levels: readonly By[];
  readonly open: ReadonlySet<string>;
  /** With all rows of each table. */
  readonly tree: Tree;
}

export function breakdownText(format: Format, breakdown: Breakdown): string {
  switch (format) {
    case 'csv':
      return csv(breakdown);
    case 'markdown':
      return markdown(breakdown);
    case 'json':
      return `${JSON.stringify(jsonOf(breakdown), null, 2)}\n`;
  }
}

function jsonOf({ query: { from, to, box, other: rangeA }, levels, tree }: Breakdown): object {
  const { total, other, peak_event, peak_ns, from_ns, to_ns } = tree.top;
  const amountsOf = ({ other: inA, ...row }: RangeRow): object => {
    if (inA === null) return row;
    const differences = EXACT.map(([measure, name]) => [name, differenceOf(measure, row, inA, tree.top)] as const);
    return { ...row, other: inA, difference: Object.fromEntries(differences) };
  };
  const withInside = ({ rows }: RangeTable, parents: readonly RangeRow[]): object[] => rows.map((row) => {
    const inside = tree.inside.get(idOf(parents, row));
    return inside === undefined ? amountsOf(row) : { ...amountsOf(row), by: levels[parents.length + 1]!, rows: withInside(inside, [...parents, row]) };
  });
  const compared = rangeA === null || other === null ? {} : { other: { ...rangeA, ...other } };
  return { from, to, from_ns, to_ns, box, peak_event, peak_ns, ...compared, by: levels[0]!, total, rows: withInside(tree.top, []) };
}

/** What a file has of two ranges, and what its columns are called. */
const EXACT: readonly (readonly [Measure, string])[] = [
  ['bytes', 'bytes_at_peak'], ['inclusive', 'inclusive_bytes_at_peak'], ['byte_seconds', 'byte_seconds'], ['mean_bytes', 'mean_bytes'],
  ['allocations', 'allocations'], ['allocation_rate', 'allocations_per_second'], ['growth', 'growth_bytes'], ['end_bytes', 'end_bytes'],
];

function differenceOf(measure: Measure, row: RangeMeasures, inA: RangeMeasures, table: RangeTable): number {
  const { a, b } = bothOf(measure, row, inA, table);
  return b - a;
}

function csv(breakdown: Breakdown): string {
  const { levels, open, tree } = breakdown;
  const rows = rowsOf(tree, levels, open);
  const depth = Math.max(0, ...rows.map(({ parents }) => parents.length)) + 1;
  const own = hasFrames(rows) ? 'self_' : '';
  const columns = tree.top.other === null ? exactColumns(own) : exactColumnsOfBoth(own, tree.top);
  const lines = [[...levels.slice(0, depth), 'where', ...columns.map(([title]) => title)].join(',')];
  for (const { row, parents } of rows) {
    const path = [...parents, row].map(({ name }) => cell(name));
    lines.push([...path, ...Array<string>(depth - path.length).fill(''), cell(row.where), ...columns.map(([, value]) => value(row))].join(','));
  }
  return `${lines.join('\r\n')}\r\n`;
}

type ExactColumn = readonly [string, (row: RangeRow) => number | string];

function exactColumns(own: string): readonly ExactColumn[] {
  return [
    [`${own}bytes_at_peak`, ({ bytes }) => bytes], ['inclusive_bytes_at_peak', ({ inclusive }) => inclusive ?? ''], [`${own}byte_seconds`, ({ byte_seconds: held }) => held],
    [`${own}allocations`, ({ allocations }) => allocations], [`${own}growth_bytes`, ({ growth }) => growth], [`${own}end_bytes`, ({ end_bytes: end }) => end],
  ];
}

function exactColumnsOfBoth(own: string, table: RangeTable): readonly ExactColumn[] {
  return EXACT.flatMap(([measure, title]): ExactColumn[] => {
    const name = measure === 'inclusive' ? title : `${own}${title}`;
    const of = (value: (both: { readonly a: number; readonly b: number }) => number) => (row: RangeRow): number | string =>
      (measure === 'inclusive' && row.inclusive === null ? '' : value(bothOf(measure, row, row.other, table)));
    return [[`${name}_a`, of(({ a }) => a)], [`${name}_b`, of(({ b }) => b)], [`${name}_difference`, of(({ a, b }) => b - a)]];
  });
}

/** Quotes a text. Spreadsheets execute a cell that begins as a formula, so it gets an apostrophe. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function markdown({ query: { from, to }, measure, levels, open, tree }: Breakdown): string {
  const rows = rowsOf(tree, levels, open);
  const isMoment = from === to;
  const isInclusive = hasFrames(rows);
  const own = isInclusive ? 'self ' : '';
  const columns: readonly (readonly [string, (row: RangeRow) => string])[] = tree.top.other !== null ? comparedColumns(measure, isInclusive, tree.top).map(({ title, text }) => [title, text] as const) : [
    [isMoment ? `${own}bytes` : `${own}at the peak`, (row) => formatBytes(row.bytes)],
    ...(isInclusive ? [['inclusive', (row: RangeRow) => formatBytes(row.inclusive ?? row.bytes)] as const] : []),
    ...(isMoment ? [] : [
      [own === '' ? 'bytes × s' : 'self × s', (row: RangeRow) => formatByteSeconds(row.byte_seconds)] as const,
      [`${own}allocations`, (row: RangeRow) => formatCount(row.allocations)] as const,
      [`${own}growth`, (row: RangeRow) => formatDelta(row.growth)] as const,
    ]),
  ];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const name = ({ row, by, parents }: TreeRow): string => '&emsp;'.repeat(parents.length) + escaped([labelOf(by, row), row.where].filter((part) => part !== '').join(' '));
  return [
    line([levels[0]!, ...columns.map(([title]) => title)]),
    line(['---', ...columns.map(() => '---:')]),
    ...rows.map((each) => line([name(each), ...columns.map(([, text]) => text(each.row))])),
    '',
  ].join('\n');
}

function escaped(text: string): string {
  return text.replace(/[\\|`*_<>[\]]/g, '\\$&').replace(/[\r\n]+/g, ' ');
}

/** Returns the name of a row for people. */
export function labelOf(by: By, { name }: RangeRow): string {
  return by === 'category' ? words(name) : name;
}

/** 1.50 GiB·s */
export function formatByteSeconds(byteSeconds: number): string {
  return `${formatBytes(byteSeconds)}·s`;
}
