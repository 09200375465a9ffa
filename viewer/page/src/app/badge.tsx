// What an answer found, beside the name of its tab. The tab's title says it in words.

import type { Finding, Mood } from '../views/answers/findings';

const SIGNS: Readonly<Record<Mood, string>> = { bad: '!', unsure: '?', calm: '✓' };

export function Badge({ finding: { mood, count } }: { readonly finding: Finding }) {
  return (
    <span class={`badge ${mood}`} aria-hidden="true">
      {mood === 'bad' && count > 0 ? count : SIGNS[mood]}
    </span>
  );
}
