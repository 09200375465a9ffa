// Loads the rows of the table.

import type { DataSource } from '../../data/data_source';
import type { Table, TableQuery, TableRow } from '../../data/protocol';
import { usePagedRows, type PagedRows } from '../../widgets/use_paged_rows';
import { keyOf } from '../../widgets/use_question';

export type TableChoice = Omit<TableQuery, 'offset' | 'limit'>;

/** `key` changes when the rows are of another table. A change of live data does not change it. */
export function useTable(source: DataSource, choice: TableChoice | null, key = choice === null ? '' : keyOf(choice)): PagedRows<TableRow, Table> {
  return usePagedRows<TableRow, Table>(
    key,
    choice === null ? null : (offset, limit, signal) => source.table({ ...choice, offset, limit }, signal),
  );
}
