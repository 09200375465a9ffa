// Scrolls virtual rows: the position follows the wheel, the scroll bar and requests to show a row, and
// the scroll bar follows the position.

import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { clampTop, scrollOfTop, topOfScroll, topThatShows, type VirtualRows } from './virtual_rows';

const SCROLL_LINE = 3; // rows per line of a wheel that counts in lines

export interface ScrolledRows {
  /** The element that scrolls. */
  readonly body: RefObject<HTMLDivElement | null>;
  readonly rows: VirtualRows;
  /** The row at the upper edge, with a fraction. */
  readonly at: number;
  readonly onScroll: () => void;
  /** Scrolls as little as possible to make a row fully visible. */
  readonly show: (row: number) => void;
  /** Scrolls so that a row is in the middle, as far as possible. */
  readonly center: (row: number) => void;
}

/** `resetKey`: when it changes, the rows scroll back to the top. */
export function useScrolledRows(count: number, rowHeight: number, resetKey: string): ScrolledRows {
  const body = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(0);
  const [top, setTop] = useState(0);
  const expectedScroll = useRef(0);
  const rows: VirtualRows = { count, rowHeight, height };
  const at = clampTop(rows, top);

  useEffect(() => {
    const element = body.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => setTop(0), [resetKey]);
  useLayoutEffect(() => {
    const element = body.current;
    if (element === null) return;
    const wanted = scrollOfTop(rows, at);
    if (Math.abs(element.scrollTop - wanted) >= 1) element.scrollTop = wanted;
    expectedScroll.current = element.scrollTop;
  }, [at, height, count]);

  // Registered here because a listener set as a property is passive, and the scroll bar of a long
  // list would skip rows.
  useEffect(() => {
    const element = body.current;
    if (element === null) return undefined;
    const onWheel = (event: WheelEvent): void => {
      if (event.ctrlKey || event.deltaY === 0) return;
      event.preventDefault();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? event.deltaY / rowHeight : event.deltaY * SCROLL_LINE;
      setTop((old) => clampTop(rows, clampTop(rows, old) + lines));
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  }, [count, height, rowHeight]);

  const onScroll = (): void => {
    const element = body.current;
    if (element === null || Math.abs(element.scrollTop - expectedScroll.current) < 1) return;
    setTop(topOfScroll(rows, element.scrollTop));
  };
  const show = (row: number): void => setTop((old) => topThatShows(rows, clampTop(rows, old), row));
  const center = (row: number): void => setTop(clampTop(rows, row + 0.5 - height / rowHeight / 2));
  return { body, rows, at, onScroll, show, center };
}
