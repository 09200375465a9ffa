// Loads the rows of a long list as the window over them moves, by pages. Requests of an outdated list
// are aborted.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { activity } from '../base/activity';
import { Coalesce } from '../base/coalesce';
import { messageOf } from '../data/data_source';
import { PAGE_ROWS, Pages } from './pages';
import { useNews } from './use_news';

/** The answer for one page: its rows, and totals of the whole list. */
export interface Page<Row> {
  readonly rows: readonly Row[];
}

export interface PagedRows<Row, Head> {
  readonly head: Head | null; // totals; its rows are those of the page that came first
  readonly failure: string;
  readonly loading: boolean;
  readonly rowAt: (index: number) => Row | undefined;
  readonly onShow: (first: number, end: number) => void;
}

/**
 * `key` changes when the rows are of another list. A change of live data does not change it. A null
 * `ask` asks nothing.
 */
export function usePagedRows<Row, Head extends Page<Row>>(
  key: string,
  ask: ((offset: number, limit: number, signal: AbortSignal) => Promise<Head>) | null,
): PagedRows<Row, Head> {
  const latest = useRef(ask);
  latest.current = ask;
  const [state, setState] = useState<{ key: string; head: Head | null; failure: string }>({ key: '', head: null, failure: '' });
  const [, redraw] = useState(0);
  const asking = useRef<Coalesce | null>(null);
  // Created while rendering, because the grid's effects ask for pages before this hook's effects
  // run.
  const { pages, abort } = useMemo(() => ({ pages: new Pages<Row>(), abort: new AbortController() }), [key]);

  const fetchPage = async (page: number, isNews = false): Promise<void> => {
    if (latest.current === null) return;
    const { signal } = abort;
    await activity.track(latest.current(page * PAGE_ROWS, PAGE_ROWS, signal)).then(
      (head) => {
        if (signal.aborted) return;
        pages.put(page, head.rows);
        setState((old) => (old.key === key && old.head !== null && !isNews ? old : { key, head, failure: '' }));
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
