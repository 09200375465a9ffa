// Asking again when there is news (base/news.ts), once the component that asks has been rendered with
// what the news are about: what it asks with may have changed with them.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { news } from '../base/news';

/** Calls `ask` after each rendering that news bring about; not for those from before the first one. */
export function useNews(ask: () => void): void {
  const [told, hear] = useState(news.version);
  const answered = useRef(told);
  useLayoutEffect(() => {
    const end = news.listen(() => hear(news.version));
    hear(news.version);
    return end;
  }, []);
  useLayoutEffect(() => {
    if (told === answered.current) return;
    answered.current = told;
    ask();
  }, [told]);
}
