// The breakdown as a file: CSV and JSON for programs, Markdown for people.

import { formatBytes, formatCount, formatDelta } from '../../base/format_bytes';
import { words } from '../../base/words';
import type { RangeQuery, RangeRow, RangeTable } from '../../data/protocol';

export type Format = 'csv' | 'markdown' | 'json';

export const FORMATS: Readonly<Record<Format, { readonly title: string; readonly ending: string; readonly type: string }>> = {
  csv: { title: 'CSV', ending: 'csv', type: 'text/csv' },
  markdown: { title: 'Markdown', ending: 'md', type: 'text/markdown' },
  json: { title: 'JSON', ending: 'json', type: 'application/json' },
};

/** `table` has all its rows. */
export function breakdownText(format: Format, query: RangeQuery, table: RangeTable): string {
  switch (format) {
    case 'csv':
      return csv(query, table);
    case 'markdown':
      return markdown(query, table);
    case 'json':
      return `${JSON.stringify(jsonOf(query, table), null, 2)}\n`;
  }
}

function jsonOf({ from, to, by }: RangeQuery, { rows, total, peak_event, peak_ns, from_ns, to_ns }: RangeTable): object {
  return { from, to, from_ns, to_ns, peak_event, peak_ns, by, total, rows };
}

function csv({ by }: RangeQuery, { rows }: RangeTable): string {
  const own = isByFrame(by) ? 'self_' : '';
  const lines = [[by, 'where', `${own}bytes_at_peak`, 'inclusive_bytes_at_peak', `${own}byte_seconds`, `${own}allocations`, `${own}growth_bytes`].join(',')];
  for (const row of rows) {
    const { name, where, bytes, inclusive, byte_seconds: held, allocations, growth } = row;
    lines.push([cell(name), cell(where), bytes, inclusive ?? '', held, allocations, growth].join(','));
  }
  return `${lines.join('\r\n')}\r\n`;
}

/** Quotes a text. Spreadsheets execute a cell that begins as a formula, so it gets an apostrophe. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function markdown({ by, from, to }: RangeQuery, { rows }: RangeTable): string {
  const isMoment = from === to;
  const isInclusive = rows.some((row) => row.inclusive !== null);
  const own = isByFrame(by) ? 'self ' : '';
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
  const name = (row: RangeRow): string => escaped([labelOf(by, row), row.where].filter((part) => part !== '').join(' '));
  return [
    line([by, ...columns.map(([title]) => title)]),
    line(['---', ...columns.map(() => '---:')]),
    ...rows.map((row) => line([name(row), ...columns.map(([, text]) => text(row))])),
    '',
  ].join('\n');
}

function escaped(text: string): string {
  return text.replace(/[\\|`*_<>[\]]/g, '\\$&').replace(/[\r\n]+/g, ' ');
}

/**
 * Returns whether rows are frames of stacks. Then only their inclusive bytes are those of whole
 * stacks; everything else is what they allocate themselves.
 */
export function isByFrame(by: RangeQuery['by']): boolean {
  return by === 'module' || by === 'function' || by === 'line';
}

/** Returns the name of a row for people. */
export function labelOf(by: RangeQuery['by'], { name }: RangeRow): string {
  return by === 'category' ? words(name) : name;
}

/** 1.50 GiB·s */
export function formatByteSeconds(byteSeconds: number): string {
  return `${formatBytes(byteSeconds)}·s`;
}
