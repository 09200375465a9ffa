// The columns of the breakdown.

import { formatBytes, formatCount, formatDelta, formatExactBytes, formatPercent } from '../../base/format_bytes';
import type { RangeAmounts, RangeQuery, RangeRow } from '../../data/protocol';
import type { Column } from '../../widgets/virtual_grid';
import { formatByteSeconds, isByFrame, labelOf } from './rows_text';

export const BY: readonly (readonly [RangeQuery['by'], string])[] = [
  ['category', 'category'], ['role', 'why alive'], ['dtype', 'tensor type'], ['module', 'module'], ['function', 'function'], ['line', 'line'], ['stack', 'stack'], ['thread', 'thread'], ['stream', 'stream'],
];

export function rangeColumns(by: RangeQuery['by'], isMoment: boolean, total: RangeAmounts): Column<RangeRow>[] {
  const isOwn = isByFrame(by);
  const numeric = (id: RangeQuery['sort'], title: string, cell: Column<RangeRow>['cell'], width = 4.6): Column<RangeRow> => ({
    id, title, width: `${width}rem`, numeric: true, sortable: true, cell,
  });
  const exact = (bytes: number) => `${formatExactBytes(bytes)}, ${formatPercent(bytes, total.bytes)}`;
  const overTime: readonly Column<RangeRow>[] = [
    numeric('byte_seconds', isOwn ? 'Self × s' : 'Bytes × s', (row) => formatByteSeconds(row.byte_seconds), 5.4),
    numeric('allocations', isOwn ? 'Self allocs' : 'Allocs', (row) => formatCount(row.allocations), 3.8),
    numeric('growth', isOwn ? 'Self growth' : 'Growth', (row) => <span title={formatExactBytes(row.growth)}>{formatDelta(row.growth)}</span>, 5.8),
  ];
  return [
    {
      id: 'name', title: BY.find(([each]) => each === by)![1].replace(/^./, (first) => first.toUpperCase()), width: 'minmax(6rem, 1fr)', numeric: false, sortable: true,
      cell: (row) => <Name label={labelOf(by, row)} where={row.where} />,
    },
    numeric('bytes', isOwn ? 'Self' : isMoment ? 'Bytes' : 'At peak', (row) => <span title={exact(row.bytes)}>{formatBytes(row.bytes)}</span>),
    ...(isOwn ? [numeric('inclusive', 'Inclusive', (row) => <span title={exact(row.inclusive ?? 0)}>{formatBytes(row.inclusive ?? 0)}</span>, 5.8)] : []),
    ...(isMoment ? [] : overTime),
  ];
}

/** Returns 'at::empty' of 'at::empty(c10::ArrayRef<long>)'. Files in brackets after a name remain. */
export function withoutArguments(label: string): string {
  return label.replace(/(?<=[^\s:])\((?!anonymous namespace).*$/, '');
}

const END = 18; // letters that remain

/** A name that is cut in the middle if there is no room for it: many names begin alike. */
function Name({ label, where }: { readonly label: string; readonly where: string }) {
  const name = withoutArguments(label);
  const end = name.length > 2 * END ? name.length - END : name.length;
  return (
    <span class="cut-name" title={where === '' ? label : `${label} ${where}`}>
      <span class="cut-begin">{name.slice(0, end)}</span>
      {end < name.length && <span class="cut-end">{name.slice(end)}</span>}
      {where !== '' && <span class="cut-where muted">{where}</span>}
    </span>
  );
}
