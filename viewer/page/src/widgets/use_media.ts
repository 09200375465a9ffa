// Whether the window matches a media query, such as '(max-height: 800px)'.

import { useEffect, useState } from 'preact/hooks';

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const take = (): void => setMatches(media.matches);
    take();
    media.addEventListener('change', take);
    return () => media.removeEventListener('change', take);
  }, [query]);
  return matches;
}
