// Scores how well a few typed letters match a title, for the command palette.

/**
 * Returns a score, higher is better, or null if the title does not contain the letters in that
 * order.
 */
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
