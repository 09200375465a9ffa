// Computes which rows of a list of any length a window shows, and the position of its scroll bar.
// Pure.
//
// Browsers cannot scroll over more than about ten million pixels. The content of a longer list is
// MAX_HEIGHT high, and the scroll bar is at the proportional position. Wheel and keys still move by
// rows: the position is kept in rows (`top`) and the bar follows it.

export const MAX_HEIGHT = 8_000_000;

export interface VirtualRows {
  readonly count: number;
  readonly rowHeight: number; // px
  readonly height: number; // px of the window
}

export function contentHeight(rows: VirtualRows): number {
  return Math.min(rows.count * rows.rowHeight, MAX_HEIGHT);
}

/** The last position: the last row is at the lower edge. */
export function lastTop(rows: VirtualRows): number {
  return Math.max(0, rows.count - rows.height / rows.rowHeight);
}

export function clampTop(rows: VirtualRows, top: number): number {
  return Math.min(Math.max(0, top), lastTop(rows));
}

export function topOfScroll(rows: VirtualRows, scrollTop: number): number {
  const way = contentHeight(rows) - rows.height;
  return way <= 0 ? 0 : clampTop(rows, (scrollTop / way) * lastTop(rows));
}

export function scrollOfTop(rows: VirtualRows, top: number): number {
  const last = lastTop(rows);
  return last === 0 ? 0 : (top / last) * Math.max(0, contentHeight(rows) - rows.height);
}

/** Returns the rows [first, end) that are at least partly visible. */
export function shown(rows: VirtualRows, top: number): { readonly first: number; readonly end: number } {
  const first = Math.floor(top);
  return { first, end: Math.min(rows.count, Math.ceil(top + rows.height / rows.rowHeight)) };
}

/** Returns the position nearest to `top` at which `row` is fully visible. */
export function topThatShows(rows: VirtualRows, top: number, row: number): number {
  const whole = rows.height / rows.rowHeight;
  if (row < top) return clampTop(rows, row);
  if (row + 1 > top + whole) return clampTop(rows, row + 1 - whole);
  return top;
}
