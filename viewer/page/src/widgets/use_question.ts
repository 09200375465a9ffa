// A component's question to the DataSource. It is asked when its key changes; the previous one is
// then aborted. The last answer stays until the next has come, so that nothing flickers. News of a
// live recording repeats the question, one at a time.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { activity } from '../base/activity';
import { Coalesce } from '../base/coalesce';
import { messageOf } from '../data/data_source';
import { useNews } from './use_news';

export interface Asked<T> {
  readonly answer: T | null; // of this key, or of an earlier one while loading
  readonly loading: boolean;
  readonly failure: string; // a sentence, or '' if it did not fail
}

/** A null `key` asks nothing. */
export function useQuestion<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ answer: null, loading: key !== null, failure: '' });
  const latest = useRef(ask);
  latest.current = ask;
  const asking = useRef<Coalesce | null>(null);
  // Asked in the task that changed the key. An effect would wait until a frame is drawn.
  useLayoutEffect(() => {
    if (key === null) {
      setAsked({ answer: null, loading: false, failure: '' });
      return undefined;
    }
    const abort = new AbortController();
    setAsked((old) => ({ answer: old.answer, loading: true, failure: '' }));
    const coalesce = new Coalesce(() =>
      activity.track(latest.current(abort.signal)).then(
        (answer) => {
          if (!abort.signal.aborted) setAsked({ answer, loading: false, failure: '' });
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          setAsked({ answer: null, loading: false, failure: messageOf(error) });
        },
      ),
    );
    asking.current = coalesce;
    coalesce.want();
    return () => {
      asking.current = null;
      coalesce.stop();
      abort.abort();
    };
  }, [key]);
  useNews(() => asking.current?.want());
  return asked;
}

/** Returns a key of the values that a question depends on. */
export function keyOf(...parts: readonly unknown[]): string {
  return JSON.stringify(parts);
}
