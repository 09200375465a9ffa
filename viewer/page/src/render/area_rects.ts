// The area under columns, cut into rectangles that are as wide as can be. A canvas pays for each row of
// each rectangle: side by side, a thousand columns are a thousand tall ones.

/** Tells of rectangles [x0, x1) x [low, high) that cover each place of the area once; at most one per column. */
export type TakesRect = (x0: number, x1: number, low: number, high: number) => void;

/**
 * Column i is from edges[i] to edges[i + 1] and from 0 to heights[i]; NaN and what is below 0: it has none.
 * REQUIRES edges that do not fall.
 */
export function areaRects(edges: ArrayLike<number>, heights: ArrayLike<number>, take: TakesRect): void {
  // Heights that rise: columns from `begins[i]` to here are at least `levels[i]` high.
  const begins: number[] = [];
  const levels: number[] = [];
  const closeDownTo = (height: number, x: number): number => {
    let begin = x;
    while (levels.length > 0 && levels[levels.length - 1]! > height) {
      const level = levels.pop()!;
      begin = begins.pop()!;
      take(begin, x, Math.max(height, levels[levels.length - 1] ?? 0), level);
    }
    return begin;
  };
  for (let i = 0; i < heights.length; ++i) {
    const x = edges[i]!;
    if (edges[i + 1] === x) continue; // too narrow to be seen
    const height = heights[i]! > 0 ? heights[i]! : 0;
    const begin = closeDownTo(height, x);
    if (height <= (levels[levels.length - 1] ?? 0)) continue;
    begins.push(begin);
    levels.push(height);
  }
  closeDownTo(0, edges[heights.length]!);
}
