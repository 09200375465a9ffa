// Asks again when there is news (base/news.ts), after the component that asks has been rendered
// with the new data, because what it asks for may depend on that data.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { news } from '../base/news';

/**
 * Calls `ask` after each rendering that follows news. Ignores news from before the first rendering.
 */
export function useNews(ask: () => void): void {
  const [version, setVersion] = useState(news.version);
  const answered = useRef(version);
  useLayoutEffect(() => {
    const end = news.listen(() => setVersion(news.version));
    setVersion(news.version);
    return end;
  }, []);
  useLayoutEffect(() => {
    if (version === answered.current) return;
    answered.current = version;
    ask();
  }, [version]);
}
