// Cuts the area under columns into rectangles that are as wide as possible. A canvas pays for each
// pixel row of each rectangle, and a thousand columns side by side are a thousand tall rectangles.

/**
 * Receives rectangles [x0, x1) x [low, high) that cover each point of the area once; at most one
 * rectangle per column.
 */
export type RectConsumer = (x0: number, x1: number, low: number, high: number) => void;

/**
 * Cuts the area. Column i extends from edges[i] to edges[i + 1] and from 0 to heights[i]; it is
 * empty if its height is NaN or negative. A column without a width raises its neighbour instead, so
 * that no maximum is lost. REQUIRES: `edges` never decrease.
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
  const shown = shownHeights(edges, heights);
  for (let i = 0; i < heights.length; ++i) {
    const x = edges[i]!;
    if (edges[i + 1] === x) continue;
    const height = shown[i]!;
    const begin = closeDownTo(height, x);
    if (height <= (levels[levels.length - 1] ?? 0)) continue;
    begins.push(begin);
    levels.push(height);
  }
  closeDownTo(0, edges[heights.length]!);
}

// Columns without a width raise the next one that has any, and the last ones the one before.
function shownHeights(edges: ArrayLike<number>, heights: ArrayLike<number>): Float64Array {
  const shown = Float64Array.from(heights, (height) => (height > 0 ? height : 0));
  const count = shown.length;
  for (let i = 0; i + 1 < count; ++i) {
    if (edges[i] === edges[i + 1]) shown[i + 1] = Math.max(shown[i]!, shown[i + 1]!);
  }
  for (let i = count - 1; i > 0 && edges[i] === edges[i + 1]; --i) shown[i - 1] = Math.max(shown[i - 1]!, shown[i]!);
  return shown;
}
