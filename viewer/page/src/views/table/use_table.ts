// The rows of the table as the window over them moves: one page at a time, the stale ones aborted.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { activity } from '../../base/activity';
import type { DataSource } from '../../data/data_source';
import type { Table, TableQuery, TableRow } from '../../data/protocol';
import { PAGE_ROWS, Pages } from '../../widgets/pages';
import { keyOf } from '../../widgets/use_question';

export type TableChoice = Omit<TableQuery, 'offset' | 'limit'>;

export interface PagedTable {
  readonly head: Table | null; // totals; rows are those of the page that came first
  readonly failure: string;
  readonly loading: boolean;
  readonly rowAt: (index: number) => TableRow | undefined;
  readonly onShow: (first: number, end: number) => void;
}

export function useTable(source: DataSource, choice: TableChoice | null): PagedTable {
  const key = choice === null ? '' : keyOf(choice);
  const [state, setState] = useState<{ key: string; head: Table | null; failure: string }>({ key: '', head: null, failure: '' });
  const [, redraw] = useState(0);
  // Made while rendering: the grid's effects ask for pages before this hook's effects run.
  const { pages, abort } = useMemo(() => ({ pages: new Pages<TableRow>(), abort: new AbortController() }), [key]);

  const fetchPage = (page: number): void => {
    if (choice === null) return;
    const { signal } = abort;
    const asked = source.table({ ...choice, offset: page * PAGE_ROWS, limit: PAGE_ROWS }, signal);
    activity.track(asked).then(
      (table) => {
        if (signal.aborted) return;
        pages.put(page, table.rows);
        setState((old) => (old.key === key && old.head !== null ? old : { key, head: table, failure: '' }));
        redraw((n) => n + 1);
      },
      (error: unknown) => {
        pages.drop(page);
        if (!signal.aborted) setState({ key, head: null, failure: error instanceof Error ? error.message : String(error) });
      },
    );
  };
  useEffect(() => {
    for (const page of pages.takeMissing(0, 1)) fetchPage(page);
    return () => abort.abort();
  }, [key]);

  const current = state.key === key;
  return {
    head: state.head,
    failure: current ? state.failure : '',
    loading: !current,
    rowAt: (index) => (current ? pages.rowAt(index) : undefined),
    onShow: (first, end) => {
      for (const page of pages.takeMissing(first, end)) fetchPage(page);
    },
  };
}
