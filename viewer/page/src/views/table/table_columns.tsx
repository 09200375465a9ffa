// The columns of the table.

import { formatBytes, formatCount, formatDelta, formatExactBytes, formatPercent } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import type { TableQuery, TableRow } from '../../data/protocol';
import { Sparkline } from '../../widgets/sparkline';
import type { Column } from '../../widgets/virtual_grid';

const TITLES: Readonly<Record<TableQuery['by'], string>> = {
  stack: 'Stack',
  function: 'Function',
  file: 'File',
  category: 'Category',
  size: 'Size',
  stream: 'Stream',
  thread: 'Thread',
  block: 'Block',
};

export function tableColumns(by: TableQuery['by'], isGrowth: boolean, totalBytes: number): Column<TableRow>[] {
  const bytes = (value: number) => <span title={formatExactBytes(value)}>{formatBytes(value)}</span>;
  const numeric = (id: TableQuery['sort'], title: string, cell: Column<TableRow>['cell']): Column<TableRow> => ({
    id,
    title,
    width: 'minmax(5.5rem, 7rem)',
    numeric: true,
    sortable: true,
    cell,
  });
  return [
    {
      id: 'name',
      title: TITLES[by],
      width: 'minmax(14rem, 1fr)',
      numeric: false,
      sortable: true,
      cell: (row) => (
        <span title={`${row.name} ${row.where}`}>
          {row.name} <span class="muted">{row.where}</span>
        </span>
      ),
    },
    numeric('bytes', isGrowth ? 'Growth' : 'Bytes', (row) =>
      isGrowth ? <span title={formatExactBytes(row.bytes)}>{formatDelta(row.bytes)}</span> : bytes(row.bytes),
    ),
    {
      id: 'share',
      title: 'Share',
      width: '4.5rem',
      numeric: true,
      sortable: false,
      cell: (row) => (totalBytes > 0 ? formatPercent(row.bytes, totalBytes) : ''),
    },
    numeric('blocks', 'Blocks', (row) => formatCount(row.blocks)),
    numeric('peak', 'Peak', (row) => bytes(row.peak_bytes)),
    { ...numeric('bytes', 'Mean size', (row) => bytes(row.mean_size)), id: 'mean', sortable: false },
    numeric('lifetime', 'Lifetime', (row) => (row.median_lifetime_ns === null ? '–' : formatDuration(row.median_lifetime_ns))),
    {
      id: 'history',
      title: 'History',
      width: '6.5rem',
      numeric: false,
      sortable: false,
      cell: (row) => <Sparkline values={row.sparkline} />,
    },
  ];
}
