// A component's question about something that changes faster than it can be answered, such as what
// is under the pointer. One question is under way at a time; when it is answered, the newest one is
// asked. Slow answers are asked for less often, so that others get their turn. The last answer stays
// until the next has come.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { activity } from '../base/activity';
import { Coalesce } from '../base/coalesce';
import { messageOf } from '../data/data_source';
import { useNews } from './use_news';
import type { Asked } from './use_question';

const LONGEST_REST_MS = 400;

export function useLatest<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ answer: null, loading: true, failure: '' });
  const latest = useRef({ key, ask });
  latest.current = { key, ask };
  const asking = useRef<Coalesce | null>(null);
  useLayoutEffect(() => {
    const abort = new AbortController();
    const one = async (): Promise<void> => {
      const begin = performance.now();
      const { key: of, ask: now } = latest.current;
      const isLast = (): boolean => latest.current.key === of;
      try {
        const answer = await now(abort.signal);
        if (abort.signal.aborted) return;
        setAsked({ answer, loading: !isLast(), failure: '' });
      } catch (error: unknown) {
        if (abort.signal.aborted) return;
        setAsked({ answer: null, loading: !isLast(), failure: messageOf(error) });
      }
      if (!isLast()) await rest(Math.min(LONGEST_REST_MS, performance.now() - begin));
    };
    const coalesce = new Coalesce(() => activity.track(one()));
    asking.current = coalesce;
    return () => {
      coalesce.stop();
      abort.abort();
    };
  }, []);
  useLayoutEffect(() => {
    setAsked((old) => (old.loading ? old : { ...old, loading: true }));
    asking.current?.want();
  }, [key]);
  useNews(() => asking.current?.want());
  return asked;
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
