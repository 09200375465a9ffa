// The rows of the table as the window over them moves: one page at a time, the stale ones aborted.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
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
  const pages = useMemo(() => new Pages<TableRow>(), [key]);
  const abort = useRef(new AbortController());

  const fetchPage = (page: number, signal: AbortSignal): void => {
    if (choice === null) return;
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
    abort.current = new AbortController();
    const mine = abort.current;
    for (const page of pages.takeMissing(0, 1)) fetchPage(page, mine.signal);
    return () => mine.abort();
  }, [key]);

  const current = state.key === key;
  return {
    head: state.head,
    failure: current ? state.failure : '',
    loading: !current,
    rowAt: (index) => (current ? pages.rowAt(index) : undefined),
    onShow: (first, end) => {
      for (const page of pages.takeMissing(first, end)) fetchPage(page, abort.current.signal);
    },
  };
}
