// Asks again when there is news (base/news.ts), after the component that asks has been rendered
// with the new data, because what it asks for may depend on that data.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { news } from '../base/news';

/**
 * Calls `ask` after each rendering that follows news. Ignores news from before the first rendering.
 */
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
