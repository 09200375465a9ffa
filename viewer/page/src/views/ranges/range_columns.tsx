// The columns of the breakdown.

import { formatBytes, formatCount, formatDelta, formatExactBytes, formatPercent } from '../../base/format_bytes';
import type { RangeAmounts, RangeQuery, RangeRow } from '../../data/protocol';
import type { Column } from '../../widgets/virtual_grid';
import { formatByteSeconds, labelOf } from './rows_text';

export const BY: readonly (readonly [RangeQuery['by'], string])[] = [
  ['category', 'category'], ['role', 'why alive'], ['dtype', 'tensor type'], ['module', 'module'], ['function', 'function'], ['line', 'line'], ['stack', 'stack'], ['thread', 'thread'], ['stream', 'stream'],
];

export function rangeColumns(by: RangeQuery['by'], isMoment: boolean, total: RangeAmounts): Column<RangeRow>[] {
  const isByFrame = by === 'module' || by === 'function' || by === 'line';
  const numeric = (id: RangeQuery['sort'], title: string, cell: Column<RangeRow>['cell'], width = 5): Column<RangeRow> => ({
    id, title, width: `${width}rem`, numeric: true, sortable: true, cell,
  });
  const exact = (bytes: number) => `${formatExactBytes(bytes)}, ${formatPercent(bytes, total.bytes)}`;
  const overTime: readonly Column<RangeRow>[] = [
    numeric('byte_seconds', 'Bytes × s', (row) => formatByteSeconds(row.byte_seconds), 5.9),
    numeric('allocations', 'Allocs', (row) => formatCount(row.allocations), 4),
    numeric('growth', 'Growth', (row) => <span title={formatExactBytes(row.growth)}>{formatDelta(row.growth)}</span>, 5.6),
  ];
  return [
    {
      id: 'name', title: BY.find(([each]) => each === by)![1].replace(/^./, (first) => first.toUpperCase()), width: 'minmax(6rem, 1fr)', numeric: false, sortable: true,
      cell: (row) => <span title={`${labelOf(by, row)} ${row.where}`}>{labelOf(by, row)} <span class="muted">{row.where}</span></span>,
    },
    numeric('bytes', isByFrame ? 'Self' : isMoment ? 'Bytes' : 'At peak', (row) => <span title={exact(row.bytes)}>{formatBytes(row.bytes)}</span>),
    ...(isByFrame ? [numeric('inclusive', 'Inclusive', (row) => <span title={exact(row.inclusive ?? 0)}>{formatBytes(row.inclusive ?? 0)}</span>, 5.8)] : []),
    ...(isMoment ? [] : overTime),
  ];
}
