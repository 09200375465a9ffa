// Loads the rows of the table as the window over them moves, by pages. Requests of an outdated
// table are aborted.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { activity } from '../../base/activity';
import { Coalesce } from '../../base/coalesce';
import { type DataSource, messageOf } from '../../data/data_source';
import type { Table, TableQuery, TableRow } from '../../data/protocol';
import { PAGE_ROWS, Pages } from '../../widgets/pages';
import { useNews } from '../../widgets/use_news';
import { keyOf } from '../../widgets/use_question';

export type TableChoice = Omit<TableQuery, 'offset' | 'limit'>;

export interface PagedTable {
  readonly head: Table | null; // totals; its rows are those of the page that came first
  readonly failure: string;
  readonly loading: boolean;
  readonly rowAt: (index: number) => TableRow | undefined;
  readonly onShow: (first: number, end: number) => void;
}

/** `key` changes when the rows are of another table. A change of live data does not change it. */
export function useTable(source: DataSource, choice: TableChoice | null, key = choice === null ? '' : keyOf(choice)): PagedTable {
  const latest = useRef(choice);
  latest.current = choice;
  const [state, setState] = useState<{ key: string; head: Table | null; failure: string }>({ key: '', head: null, failure: '' });
  const [, redraw] = useState(0);
  const asking = useRef<Coalesce | null>(null);
  // Created while rendering, because the grid's effects ask for pages before this hook's effects
  // run.
  const { pages, abort } = useMemo(() => ({ pages: new Pages<TableRow>(), abort: new AbortController() }), [key]);

  const fetchPage = async (page: number, isNews = false): Promise<void> => {
    if (latest.current === null) return;
    const { signal } = abort;
    const asked = source.table({ ...latest.current, offset: page * PAGE_ROWS, limit: PAGE_ROWS }, signal);
    await activity.track(asked).then(
      (table) => {
        if (signal.aborted) return;
        pages.put(page, table.rows);
        setState((old) => (old.key === key && old.head !== null && !isNews ? old : { key, head: table, failure: '' }));
        redraw((n) => n + 1);
      },
      (error: unknown) => {
        pages.drop(page);
        if (!signal.aborted) setState({ key, head: null, failure: messageOf(error) });
      },
    );
  };
  useEffect(() => {
    for (const page of pages.takeMissing(0, 1)) void fetchPage(page);
    // One page after the other. The pages used last are asked for last, so that their totals are
    // kept.
    const coalesce = new Coalesce(async () => {
      const known = pages.numbers(); // none if the first one failed
      for (const page of known.length > 0 ? known : pages.takeMissing(0, 1)) await fetchPage(page, true);
    });
    asking.current = coalesce;
    return () => {
      asking.current = null;
      coalesce.stop();
      abort.abort();
    };
  }, [key]);
  useNews(() => asking.current?.want());

  const current = state.key === key;
  return {
    head: state.head,
    failure: current ? state.failure : '',
    loading: !current,
    rowAt: (index) => (current ? pages.rowAt(index) : undefined),
    onShow: (first, end) => {
      for (const page of pages.takeMissing(first, end)) void fetchPage(page);
    },
  };
}
