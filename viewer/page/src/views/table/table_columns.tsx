// The columns of the table.

import { formatBytes, formatCount, formatDelta, formatExactBytes, formatPercent } from '../../base/format_bytes';
import { formatDuration, formatMoment } from '../../base/format_time';
import { words } from '../../base/words';
import type { TableBlock, TableQuery, TableRow } from '../../data/protocol';
import { Sparkline } from '../../widgets/sparkline';
import type { Column } from '../../widgets/virtual_grid';

/** The moments of a row's history. */
export const SPARKLINE_COLUMNS = 48;

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
          {by === 'category' ? words(row.name) : row.name} <span class="muted">{row.where}</span>
        </span>
      ),
    },
    numeric('bytes', isGrowth ? 'Growth' : 'Bytes', (row) =>
      isGrowth ? <span title={formatExactBytes(row.bytes)}>{formatDelta(row.bytes)}</span> : bytes(row.bytes),
    ),
    {
      id: 'share',
      title: 'Share',
      width: '5rem',
      numeric: true,
      sortable: false,
      cell: (row) => (totalBytes > 0 ? formatPercent(row.bytes, totalBytes) : ''),
    },
    ...(by === 'block' ? ofBlock() : [
      numeric('blocks', 'Blocks', (row) => formatCount(row.blocks)),
      numeric('peak', 'Peak', (row) => bytes(row.peak_bytes)),
      { ...numeric('bytes', 'Mean size', (row) => bytes(row.mean_size)), id: 'mean', sortable: false },
    ]),
    numeric('lifetime', 'Lifetime', (row) => (row.median_lifetime_ns === null ? '–' : formatDuration(row.median_lifetime_ns))),
    {
      id: 'history',
      title: 'History',
      hint: `What was held at ${SPARKLINE_COLUMNS} moments, evenly spread over the events of the recording. The full height is the peak, which may lie between two of them.`,
      width: '6.5rem',
      numeric: false,
      sortable: false,
      cell: (row) => <Sparkline values={row.sparkline} peak={row.peak_bytes} />,
    },
  ];
}

/** The columns of a block, instead of those whose values are the same for each one. */
function ofBlock(): Column<TableRow>[] {
  const column = (id: string, title: string, width: string, cell: (block: TableBlock) => string): Column<TableRow> => ({
    id, title, width, numeric: false, sortable: false,
    cell: ({ block }) => (block === null ? '' : cell(block)),
  });
  return [
    column('category', 'Category', '9rem', ({ category }) => words(category)),
    column('address', 'Address', '9.5rem', ({ address }) => address),
    column('birth', 'Allocated', '7rem', ({ birth, birth_ns }) => (birth === 0 ? 'before' : formatMoment(birth_ns, 1e3))),
  ];
}
