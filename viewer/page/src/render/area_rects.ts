// Cuts the area under columns into rectangles that are as wide as possible. A canvas pays for each
// pixel row of each rectangle, and a thousand columns side by side are a thousand tall rectangles.

/**
 * Receives rectangles [x0, x1) x [low, high) that cover each point of the area once; at most one
 * rectangle per column.
 */
export type RectConsumer = (x0: number, x1: number, low: number, high: number) => void;

/**
 * Cuts the area. Column i extends from edges[i] to edges[i + 1] and from 0 to heights[i]; it is
 * empty if its height is NaN or negative. REQUIRES: `edges` never decrease.
 */
export function areaRects(edges: ArrayLike<number>, heights: ArrayLike<number>, take: RectConsumer): void {
  // A stack of increasing heights: the columns from `begins[i]` to here are at least `levels[i]`
  // high.
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
