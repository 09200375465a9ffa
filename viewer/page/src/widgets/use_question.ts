// A question to the DataSource as a component asks it: asked anew when its key changes, the one
// before it aborted. While it is under way the last answer stays, so that nothing flickers. Of what goes
// on the same is asked again when there is news, one at a time.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { activity } from '../base/activity';
import { Again } from '../base/again';
import { useNews } from './use_news';

export interface Asked<T> {
  readonly answer: T | null; // of this key, or while loading of an earlier one
  readonly loading: boolean;
  readonly failure: string; // a sentence; '' : none
}

/** `key` null: nothing to ask. */
export function useQuestion<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ answer: null, loading: key !== null, failure: '' });
  const latest = useRef(ask);
  latest.current = ask;
  const asking = useRef<Again | null>(null);
  // Asked in the task that changed the key: an effect would wait for a frame to be drawn first.
  useLayoutEffect(() => {
    if (key === null) {
      setAsked({ answer: null, loading: false, failure: '' });
      return undefined;
    }
    const abort = new AbortController();
    setAsked((old) => ({ answer: old.answer, loading: true, failure: '' }));
    const again = new Again(() =>
      activity.track(latest.current(abort.signal)).then(
        (answer) => {
          if (!abort.signal.aborted) setAsked({ answer, loading: false, failure: '' });
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          setAsked({ answer: null, loading: false, failure: error instanceof Error ? error.message : String(error) });
        },
      ),
    );
    asking.current = again;
    again.want();
    return () => {
      asking.current = null;
      again.stop();
      abort.abort();
    };
  }, [key]);
  useNews(() => asking.current?.want());
  return asked;
}

/** A key of what a question depends on. */
export function keyOf(...parts: readonly unknown[]): string {
  return JSON.stringify(parts);
}
