// Memory by stack, function, file, category, size, stream, thread or block; any number of rows.

import type { TableQuery, TableRow } from '../../data/protocol';
import { formatBytes } from '../../base/format_bytes';
import { plural } from '../../base/plural';
import { scopeOf, scopeWords } from '../../state/scope';
import type { Command } from '../../state/commands';
import type { TableOptions } from '../../state/state';
import { Choice } from '../../widgets/choice';
import { ScopeBar } from '../../widgets/scope_bar';
import { Empty, Failed, Loading } from '../../widgets/states';
import { VirtualGrid } from '../../widgets/virtual_grid';
import { useCommands } from '../../widgets/use_commands';
import { keyOf } from '../../widgets/use_question';
import type { View, ViewProps } from '../view';
import { onlyRow, selectionOf, splitId } from './row_link';
import { tableColumns } from './table_columns';
import { useTable, type TableChoice } from './use_table';

const ROW_HEIGHT = 26;
const SPARKLINE_COLUMNS = 48;

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
  ['rate', 'rate of allocation'],
  ['lifetime', 'lifetime'],
  ['name', 'name'],
];

function TableView({ state, store, source, commands }: ViewProps) {
  const scope = scopeOf(state);
  const { by, sort, descending } = state.table;
  const choice: TableChoice | null = scope === null ? null : { ...scope, by, sort, descending, sparkline: SPARKLINE_COLUMNS };
  const table = useTable(source, choice);
  const set = (change: Partial<TableOptions>): void => store.update((old) => ({ table: { ...old.table, ...change } }));
  const { head } = table;
  useCommands(commands, tableCommands(state.table, set));
  const open = (row: TableRow): void => store.update({ selection: selectionOf(row) });
  const chosen = state.selection;
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
        <OnlySelected {...{ state, store, source }} table={head} />
      </div>
      {table.failure !== '' && <Failed message={table.failure} />}
      {head === null && table.loading && <Loading what="Adding up…" />}
      {head?.total_rows === 0 && !table.loading && (
        <Empty title="No rows">
          <p>Nothing is {scopeWords(state)} that the filter lets through.</p>
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
          isSelected={(row) => isChosen(row, chosen)}
          onOpen={open}
          sort={{ id: sort, descending }}
          onSort={(id) => sortBy(id, state.table, set)}
          resetKey={choice === null ? '' : keyOf(choice)}
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
    { id: 'table.by', title: 'Rows by the next: stack, function, file, ...', group, hotkeys: ['G'], run: () => set({ by: after(BY, options.by) }) },
    { id: 'table.sort', title: 'Sort by the next: bytes, blocks, peak, ...', group, hotkeys: ['O'], run: () => set({ sort: after(SORTS, options.sort) }) },
    { id: 'table.reverse', title: 'Reverse the order', group, hotkeys: ['R'], run: () => set({ descending: !options.descending }) },
  ];
}

function sortBy(id: string, old: TableOptions, set: (change: Partial<TableOptions>) => void): void {
  const sort = SORTS.find(([each]) => each === id)?.[0];
  if (sort !== undefined) set({ sort, descending: old.sort === sort ? !old.descending : sort !== 'name' });
}

function isChosen(row: TableRow, chosen: ViewProps['state']['selection']): boolean {
  const [kind, rest] = splitId(row.id);
  if (chosen.kind === 'block') return kind === 'block' && Number(rest) === chosen.row;
  return chosen.kind === 'stack' && kind === 'stack' && Number(rest) === chosen.stack;
}

interface OnlySelectedProps extends Pick<ViewProps, 'state' | 'store' | 'source'> {
  readonly table: { readonly rows: readonly TableRow[] } | null;
}

/** Of the row that is selected: every view shows only its blocks. */
function OnlySelected({ state, store, table }: OnlySelectedProps) {
  const row = table?.rows.find((each) => isChosen(each, state.selection));
  const { selection } = state;
  const change =
    row !== undefined
      ? onlyRow(state, row)
      : selection.kind === 'stack'
        ? { filter: { ...state.filter, stack: selection.stack } }
        : null;
  if (change === null || selection.kind === 'block') return null;
  return (
    <button type="button" onClick={() => store.update(change)}>
      Only the selected row's blocks
    </button>
  );
}

export const TABLE_VIEW: View = { title: 'Table', component: TableView };
