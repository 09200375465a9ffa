// How well a few typed letters fit a title, for the command palette.

/** Higher is better; null: the letters are not all there in that order. */
export function fuzzyScore(query: string, title: string): number | null {
  const letters = query.toLowerCase().replace(/\s+/g, '');
  const text = title.toLowerCase();
  let score = 0;
  let at = -1;
  for (const letter of letters) {
    const next = text.indexOf(letter, at + 1);
    if (next < 0) return null;
    if (next === at + 1) score += 3;
    if (next === 0 || text[next - 1] === ' ') score += 2;
    score -= (next - at - 1) / 64;
    at = next;
  }
  return score;
}
