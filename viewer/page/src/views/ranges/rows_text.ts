// The breakdown as a file: CSV and JSON for programs, Markdown for people. All have the rows of the
// tree; CSV has a column for each level.

import { formatBytes, formatCount, formatDelta } from '../../base/format_bytes';
import { words } from '../../base/words';
import type { RangeQuery, RangeRow, RangeTable } from '../../data/protocol';
import { hasFrames, idOf, rowsOf, type By, type Tree, type TreeRow } from './range_tree';

export type Format = 'csv' | 'markdown' | 'json';

export const FORMATS: Readonly<Record<Format, { readonly title: string; readonly ending: string; readonly type: string }>> = {
  csv: { title: 'CSV', ending: 'csv', type: 'text/csv' },
  markdown: { title: 'Markdown', ending: 'md', type: 'text/markdown' },
  json: { title: 'JSON', ending: 'json', type: 'application/json' },
};

export interface Breakdown {
  readonly query: Pick<RangeQuery, 'from' | 'to' | 'box'>;
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

function jsonOf({ query: { from, to, box }, levels, tree }: Breakdown): object {
  const { total, peak_event, peak_ns, from_ns, to_ns } = tree.top;
  const withInside = ({ rows }: RangeTable, parents: readonly RangeRow[]): object[] => rows.map((row) => {
    const inside = tree.inside.get(idOf(parents, row));
    return inside === undefined ? row : { ...row, by: levels[parents.length + 1]!, rows: withInside(inside, [...parents, row]) };
  });
  return { from, to, from_ns, to_ns, box, peak_event, peak_ns, by: levels[0]!, total, rows: withInside(tree.top, []) };
}

function csv({ levels, open, tree }: Breakdown): string {
  const rows = rowsOf(tree, levels, open);
  const depth = Math.max(0, ...rows.map(({ parents }) => parents.length)) + 1;
  const own = hasFrames(rows) ? 'self_' : '';
  const lines = [[...levels.slice(0, depth), 'where', `${own}bytes_at_peak`, 'inclusive_bytes_at_peak', `${own}byte_seconds`, `${own}allocations`, `${own}growth_bytes`, `${own}end_bytes`].join(',')];
  for (const { row, parents } of rows) {
    const path = [...parents, row].map(({ name }) => cell(name));
    const { where, bytes, inclusive, byte_seconds: held, allocations, growth, end_bytes: end } = row;
    lines.push([...path, ...Array<string>(depth - path.length).fill(''), cell(where), bytes, inclusive ?? '', held, allocations, growth, end].join(','));
  }
  return `${lines.join('\r\n')}\r\n`;
}

/** Quotes a text. Spreadsheets execute a cell that begins as a formula, so it gets an apostrophe. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function markdown({ query: { from, to }, levels, open, tree }: Breakdown): string {
  const rows = rowsOf(tree, levels, open);
  const isMoment = from === to;
  const isInclusive = hasFrames(rows);
  const own = isInclusive ? 'self ' : '';
  const columns: readonly (readonly [string, (row: RangeRow) => string])[] = [
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
