// The columns of the breakdown.

import { formatBytes, formatCount, formatDelta, formatExactBytes, formatPercent } from '../../base/format_bytes';
import type { RangeQuery, RangeRow, RangeTable } from '../../data/protocol';
import type { Measure } from '../../data/range_measures';
import type { Column } from '../../widgets/virtual_grid';
import { bothOf, comparedColumns, moreWords } from './compared';
import type { By, TreeRow } from './range_tree';
import { formatByteSeconds, labelOf } from './rows_text';

export const BY: readonly (readonly [By, string])[] = [
  ['category', 'category'], ['role', 'why alive'], ['dtype', 'tensor type'], ['module', 'module'], ['function', 'function'], ['line', 'line'], ['stack', 'stack'], ['thread', 'thread'], ['stream', 'stream'],
];

export function titleOf(by: By): string {
  return BY.find(([each]) => each === by)![1];
}

export interface ColumnOptions {
  readonly by: By; // what the outermost rows are
  readonly kind: 'range' | 'moment' | 'compare' | 'ranges';
  readonly measure: Measure; // the one that is shown if two ranges are compared
  readonly hasFrames: boolean; // then columns but one count what frames allocate themselves
  readonly table: RangeTable; // the outermost one
  readonly toggle: (row: TreeRow) => void;
}

export function rangeColumns({ by, kind, measure, hasFrames, table, toggle }: ColumnOptions): Column<TreeRow>[] {
  const { total } = table;
  const numeric = (id: RangeQuery['sort'], title: string, cell: (row: RangeRow) => ReturnType<Column<TreeRow>['cell']>, width = 4.6): Column<TreeRow> => ({
    id, title, width: `${width}rem`, numeric: true, sortable: true, cell: ({ row }) => cell(row),
  });
  const bytesOf = (bytes: number, all: number) => <span title={`${formatExactBytes(bytes)}, ${formatPercent(bytes, all)}`}>{formatBytes(bytes)}</span>;
  const own = (title: string): string => (hasFrames ? `Self ${title}` : title.replace(/^./, (first) => first.toUpperCase()));
  const bytes = numeric('bytes', hasFrames ? 'Self' : kind === 'moment' ? 'Bytes' : 'At peak', (row) => bytesOf(row.bytes, total.bytes));
  const inclusive = numeric('inclusive', 'Inclusive', (row) => bytesOf(row.inclusive ?? row.bytes, total.bytes), 5.8);
  const growth = numeric('growth', own('growth'), (row) => <span title={formatExactBytes(row.growth)}>{formatDelta(row.growth)}</span>, 5.8);
  const allocations = numeric('allocations', own('allocs'), (row) => formatCount(row.allocations), 3.8);
  const name: Column<TreeRow> = {
    id: 'name', title: titleOf(by).replace(/^./, (first) => first.toUpperCase()), width: 'minmax(6rem, 1fr)', numeric: false, sortable: true,
    cell: (row) => <Name row={row} toggle={toggle} />,
  };
  if (kind === 'ranges') {
    return [name, ...comparedColumns(measure, hasFrames, table).map(({ id, title, text }): Column<TreeRow> => ({
      id, title, width: '6.4rem', numeric: true, sortable: true,
      cell: ({ row }) => <span title={id === 'difference' ? moreWords(measure, bothOf(measure, row, row.other, table)) : undefined}>{text(row)}</span>,
    }))];
  }
  if (kind === 'compare') {
    const before: Column<TreeRow> = { ...numeric('bytes', own('before'), (row) => bytesOf(row.end_bytes - row.growth, total.end_bytes - total.growth), 5), id: 'before', sortable: false };
    return [name, before, numeric('end_bytes', own('after'), (row) => bytesOf(row.end_bytes, total.end_bytes), 5), growth, allocations];
  }
  return [
    name,
    bytes,
    ...(hasFrames ? [inclusive] : []),
    ...(kind === 'moment' ? [] : [numeric('byte_seconds', hasFrames ? 'Self × s' : 'Bytes × s', (row) => formatByteSeconds(row.byte_seconds), 5.4), allocations, growth]),
  ];
}

/** Returns 'at::empty' of 'at::empty(c10::ArrayRef<long>)'. Files in brackets after a name remain. */
export function withoutArguments(label: string): string {
  return label.replace(/(?<=[^\s:])\((?!anonymous namespace).*$/, '');
}

const END = 18; // letters that remain

/** A name that is cut in the middle if there is no room for it: many names begin alike. */
function Name({ row: tree, toggle }: { readonly row: TreeRow; readonly toggle: (row: TreeRow) => void }) {
  const { row, by, parents, canOpen, isOpen } = tree;
  const label = labelOf(by, row);
  const name = withoutArguments(label);
  const end = name.length > 2 * END ? name.length - END : name.length;
  return (
    <span class="cut-name" style={{ paddingLeft: `${parents.length * 0.9}rem` }} title={`${titleOf(by)} ${[label, row.where].filter((part) => part !== '').join(' ')}`}>
      {canOpen ? (
        <button
          type="button" class={isOpen ? 'opener open' : 'opener'} tabIndex={-1} aria-label={`${isOpen ? 'Close' : 'Open'} ${name}`}
          onClick={(event) => {
            event.stopPropagation();
            toggle(tree);
          }}
        />
      ) : <span class="opener" />}
      <span class="cut-begin">{name.slice(0, end)}</span>
      {end < name.length && <span class="cut-end">{name.slice(end)}</span>}
      {row.where !== '' && <span class="cut-where muted">{row.where}</span>}
    </span>
  );
}
