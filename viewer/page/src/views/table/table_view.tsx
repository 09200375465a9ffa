// Memory by stack, function, file, category, size, stream, thread or block, with any number of
// rows.

import { useState } from 'preact/hooks';
import type { TableQuery, TableRow } from '../../data/protocol';
import { formatBytes } from '../../base/format_bytes';
import { plural } from '../../base/plural';
import { momentKey } from '../../state/live';
import { scopeOf, scopeWords } from '../../state/scope';
import type { Command } from '../../state/commands';
import type { Selection, TableOptions } from '../../state/state';
import { Choice } from '../../widgets/choice';
import { ScopeBar } from '../../widgets/scope_bar';
import { Empty, Failed, Loading } from '../../widgets/states';
import { VirtualGrid } from '../../widgets/virtual_grid';
import { useCommands } from '../../widgets/use_commands';
import { keyOf } from '../../widgets/use_question';
import type { View, ViewProps } from '../view';
import { onlyRow, onlyWords, selectionOf, splitId } from './row_link';
import { SPARKLINE_COLUMNS, tableColumns } from './table_columns';
import { useTable, type TableChoice } from './use_table';

const ROW_HEIGHT = 26;

const BY: readonly (readonly [TableQuery['by'], string])[] = [
  ['stack', 'stack'],
  ['function', 'function'],
  ['file', 'file'],
  ['category', 'category'],
  ['size', 'size'],
  ['stream', 'stream'],
  ['thread', 'thread'],
  ['block', 'single block'],
];
const SORTS: readonly (readonly [TableQuery['sort'], string])[] = [
  ['bytes', 'bytes'],
  ['blocks', 'blocks'],
  ['peak', 'peak'],
  ['growth', 'growth'],
  ['rate', 'allocation rate'],
  ['lifetime', 'lifetime'],
  ['name', 'name'],
];

function TableView({ state, store, source, commands }: ViewProps) {
  const scope = scopeOf(state);
  const { by, sort, descending } = state.table;
  const choice: TableChoice | null = scope === null ? null : { ...scope, by, sort, descending, sparkline: SPARKLINE_COLUMNS };
  const key = choice === null ? '' : keyOf({ ...choice, to: momentKey(state, choice.to) });
  const table = useTable(source, choice, key);
  const set = (change: Partial<TableOptions>): void => store.update((old) => ({ table: { ...old.table, ...change } }));
  const { head } = table;
  useCommands(commands, tableCommands(state.table, set));
  // Most rows are not a selection that other views know, so the row is remembered while its
  // selection lasts.
  const [opened, setOpened] = useState<{ readonly row: TableRow; readonly selection: Selection } | null>(null);
  const chosen = opened !== null && opened.selection === state.selection ? opened.row : null;
  const open = (row: TableRow): void => {
    const selection = selectionOf(row);
    setOpened({ row, selection });
    store.update({ selection });
  };
  return (
    <section class="view table-view" aria-label="Table">
      <ScopeBar state={state} store={store} />
      <div class="bar" role="group" aria-label="Rows">
        <Choice label="One row per" value={by} options={BY} onChoose={(value) => set({ by: value })} />
        <Choice label="Sort by" value={sort} options={SORTS} onChoose={(value) => set({ sort: value, descending: value !== 'name' })} />
        <span role="status" class="muted">
          {head === null
            ? ''
            : `${plural(head.total_rows, 'row')}: ${formatBytes(head.total_bytes)} in ${plural(head.total_blocks, 'block')}`}
        </span>
        <OnlySelected state={state} store={store} chosen={chosen} />
      </div>
      {table.failure !== '' && <Failed message={table.failure} />}
      {head === null && table.loading && <Loading what="Adding up…" />}
      {head?.total_rows === 0 && !table.loading && (
        <Empty title="No rows">
          <p>No memory that matches the filter is {scopeWords(state)}.</p>
        </Empty>
      )}
      {head !== null && head.total_rows > 0 && (
        <VirtualGrid<TableRow>
          label={`Memory by ${by}`}
          columns={tableColumns(by, state.of === 'growth', head.total_bytes)}
          count={head.total_rows}
          rowHeight={ROW_HEIGHT}
          rowAt={table.rowAt}
          onShow={table.onShow}
          isSelected={(row) => row.id === chosen?.id || isSelection(row, state.selection)}
          onOpen={open}
          sort={{ id: sort, descending }}
          onSort={(id) => sortBy(id, state.table, set)}
          resetKey={key}
        />
      )}
    </section>
  );
}

function tableCommands(options: TableOptions, set: (change: Partial<TableOptions>) => void): Command[] {
  const group = 'Table';
  const after = <T,>(list: readonly (readonly [T, string])[], value: T): T =>
    list[(list.findIndex(([each]) => each === value) + 1) % list.length]![0];
  return [
    { id: 'table.by', title: 'Next grouping: stack, function, file, ...', group, hotkeys: ['G'], run: () => set({ by: after(BY, options.by) }) },
    { id: 'table.sort', title: 'Next sort order: bytes, blocks, peak, ...', group, hotkeys: ['O'], run: () => set({ sort: after(SORTS, options.sort) }) },
    { id: 'table.reverse', title: 'Reverse the order', group, hotkeys: ['R'], run: () => set({ descending: !options.descending }) },
  ];
}

function sortBy(id: string, old: TableOptions, set: (change: Partial<TableOptions>) => void): void {
  const sort = SORTS.find(([each]) => each === id)?.[0];
  if (sort !== undefined) set({ sort, descending: old.sort === sort ? !old.descending : sort !== 'name' });
}

function isSelection(row: TableRow, selection: Selection): boolean {
  const [kind, rest] = splitId(row.id);
  if (selection.kind === 'block') return kind === 'block' && Number(rest) === selection.row;
  return selection.kind === 'stack' && kind === 'stack' && Number(rest) === selection.stack;
}

interface OnlySelectedProps extends Pick<ViewProps, 'state' | 'store'> {
  readonly chosen: TableRow | null;
}

/** A button for the selected row that restricts every view to its blocks. */
function OnlySelected({ state, store, chosen }: OnlySelectedProps) {
  const { selection, table } = state;
  const row = chosen !== null && splitId(chosen.id)[0] === table.by ? chosen : null;
  // The stack may have been selected in another view.
  const ofStack = table.by === 'stack' && selection.kind === 'stack' ? { filter: { ...state.filter, stack: selection.stack } } : null;
  const change = row === null ? ofStack : onlyRow(state, row);
  if (change === null || selection.kind === 'block') return null;
  return (
    <button type="button" onClick={() => store.update(change)}>
      {row === null ? "Only the selected row's blocks" : onlyWords(row)}
    </button>
  );
}

export const TABLE_VIEW: View = { title: 'Table', component: TableView };
