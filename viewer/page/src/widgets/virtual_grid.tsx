// A grid of any number of rows in which only the visible ones are elements of the page. The owner
// fetches the rows: `rowAt` returns undefined for a row that has not come yet, `onShow` reports
// which rows are needed. Arrow keys, Page Up and Down, Home and End move the active row; Enter
// opens it.

import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import {
  clampTop,
  contentHeight,
  scrollOfTop,
  shown,
  topOfScroll,
  topThatShows,
  type VirtualRows,
} from './virtual_rows';

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  readonly width: string; // for grid-template-columns
  readonly numeric: boolean;
  readonly sortable: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

export interface VirtualGridProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly count: number;
  readonly rowHeight: number;
  readonly rowAt: (index: number) => Row | undefined;
  readonly onShow: (first: number, end: number) => void;
  readonly isSelected: (row: Row) => boolean;
  readonly onOpen: (row: Row) => void;
  readonly sort: { readonly id: string; readonly descending: boolean };
  readonly onSort: (id: string) => void;
  /** When it changes, the grid scrolls back to its top. */
  readonly resetKey: string;
}

const SCROLL_LINE = 3; // rows per line of a wheel that counts in lines

export function VirtualGrid<Row>(props: VirtualGridProps<Row>) {
  const { columns, count, rowHeight } = props;
  const body = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(0);
  const [top, setTop] = useState(0);
  const [active, setActive] = useState(0);
  const expectedScroll = useRef(0);
  const rows: VirtualRows = { count, rowHeight, height };

  useEffect(() => {
    const element = body.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    setTop(0);
    setActive(0);
  }, [props.resetKey]);

  const at = clampTop(rows, top);
  const { first, end } = shown(rows, at);
  useEffect(() => {
    if (end > first) props.onShow(first, end);
  }, [first, end, props.resetKey]);
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
  const moveTo = (row: number): void => {
    const wanted = Math.min(Math.max(0, row), Math.max(0, count - 1));
    setActive(wanted);
    setTop((old) => topThatShows(rows, clampTop(rows, old), wanted));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return; // a button of the header
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const page = Math.max(1, Math.floor(height / rowHeight) - 1);
    const moves: Readonly<Record<string, number>> = {
      ArrowUp: active - 1,
      ArrowDown: active + 1,
      PageUp: active - page,
      PageDown: active + page,
      Home: 0,
      End: count - 1,
    };
    const wanted = moves[event.key];
    const row = props.rowAt(active);
    if (wanted !== undefined) moveTo(wanted);
    else if (event.key === 'Enter' && row !== undefined) props.onOpen(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const template = columns.map((column) => column.width).join(' ');
  const indexes = Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i);
  return (
    <div
      class="grid"
      role="grid"
      tabIndex={0}
      aria-label={props.label}
      aria-rowcount={count + 1}
      aria-activedescendant={active >= first && active < end ? `row-${active}` : undefined}
      style={{ '--columns': template }}
      onKeyDown={onKeyDown}
    >
      <div class="grid-row grid-head" role="row" aria-rowindex={1}>
        {columns.map((column) => (
          <GridHead key={column.id} column={column} sort={props.sort} onSort={props.onSort} />
        ))}
      </div>
      <div class="grid-body" ref={body} tabIndex={-1} role="rowgroup" onScroll={onScroll}>
        <div class="grid-space" role="presentation" style={{ height: `${contentHeight(rows)}px` }}>
          {indexes.map((index) => {
            const row = props.rowAt(index);
            const y = (index - at) * rowHeight + scrollOfTop(rows, at);
            return (
              <div
                key={index}
                id={`row-${index}`}
                class={`grid-row${index === active ? ' active' : ''}${row === undefined ? ' pending' : ''}`}
                role="row"
                aria-rowindex={index + 2}
                aria-selected={row !== undefined && props.isSelected(row)}
                style={{ transform: `translateY(${y}px)`, height: `${rowHeight}px` }}
                onClick={() => {
                  setActive(index);
                  if (row !== undefined) props.onOpen(row);
                }}
              >
                {columns.map((column) => (
                  <div key={column.id} role="gridcell" class={column.numeric ? 'cell numeric' : 'cell'}>
                    {row === undefined ? '…' : column.cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface GridHeadProps<Row> {
  readonly column: Column<Row>;
  readonly sort: { readonly id: string; readonly descending: boolean };
  readonly onSort: (id: string) => void;
}

function GridHead<Row>({ column, sort, onSort }: GridHeadProps<Row>) {
  const sorted = sort.id === column.id;
  const direction = sort.descending ? 'descending' : 'ascending';
  return (
    <div
      role="columnheader"
      class={column.numeric ? 'cell numeric' : 'cell'}
      aria-sort={sorted ? direction : column.sortable ? 'none' : undefined}
    >
      {column.sortable ? (
        <button type="button" class="sort" onClick={() => onSort(column.id)}>
          {column.title}
          <span aria-hidden="true">{sorted ? (sort.descending ? ' ▾' : ' ▴') : ''}</span>
        </button>
      ) : (
        column.title
      )}
    </div>
  );
}
