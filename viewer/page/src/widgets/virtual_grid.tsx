// A grid of any number of rows in which only the visible ones are elements of the page. The owner
// fetches the rows: `rowAt` returns undefined for a row that has not come yet, `onShow` reports
// which rows are needed. Arrow keys, Page Up and Down, Home and End move the active row; Enter
// opens it. In a tree, the right arrow opens a row and the left arrow closes it.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useScrolledRows } from './use_scrolled_rows';
import { contentHeight, scrollOfTop, shown, type VirtualRows } from './virtual_rows';

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  readonly hint?: string; // what it shows, for its tooltip
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
  /** If rows have rows in them: how deep a row is, and whether it is open; null: it cannot be. */
  readonly tree?: {
    readonly of: (row: Row) => { readonly depth: number; readonly isOpen: boolean | null };
    readonly toggle: (row: Row) => void;
  };
  /** If the owner moves the active row too: the row, and what happens when the user moves it. */
  readonly active?: number;
  readonly onMove?: (row: number) => void;
}

export function VirtualGrid<Row>(props: VirtualGridProps<Row>) {
  const { columns, count, rowHeight } = props;
  const { body, rows, at, onScroll, show, center } = useScrolledRows(count, rowHeight, props.resetKey);
  const [own, setOwn] = useState(0);
  useEffect(() => setOwn(0), [props.resetKey]);
  const active = props.active ?? own;
  const setActive = (row: number): void => {
    setOwn(row);
    props.onMove?.(row);
  };
  useEffect(() => {
    if (props.active === undefined) return;
    if (props.active === own) show(own);
    else center(props.active);
  }, [props.active, rows.height]);
  const { first, end } = shown(rows, at);
  useEffect(() => {
    if (end > first) props.onShow(first, end);
  }, [first, end, props.resetKey]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return; // a button of the header
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const wanted = rowAfter(event.key, active, rows);
    const row = props.rowAt(active);
    if (wanted !== undefined) {
      setActive(wanted);
      show(wanted);
    } else if (event.key === 'Enter' && row !== undefined) props.onOpen(row);
    else if (props.tree === undefined || row === undefined || !turn(event.key, row, props.tree)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  // The left arrow closes an open row, otherwise it goes to the row that the active one is in.
  const turn = (key: string, row: Row, { of, toggle }: NonNullable<typeof props.tree>): boolean => {
    const { depth, isOpen } = of(row);
    if ((key === 'ArrowRight' && isOpen === false) || (key === 'ArrowLeft' && isOpen === true)) toggle(row);
    else if (key === 'ArrowLeft' && depth > 0) {
      let above = active - 1;
      while (above > 0 && of(props.rowAt(above)!).depth >= depth) --above;
      setActive(above);
      show(above);
    } else return key === 'ArrowRight' || key === 'ArrowLeft';
    return true;
  };
  const onClick = (index: number, row: Row | undefined, element: HTMLElement): void => {
    element.closest<HTMLElement>('.grid')?.focus(); // so that keys move on from there
    setActive(index);
    if (row !== undefined) props.onOpen(row);
  };

  const template = columns.map((column) => column.width).join(' ');
  const indexes = Array.from({ length: Math.max(0, end - first) }, (_, i) => first + i);
  return (
    <div
      class="grid"
      role={props.tree === undefined ? 'grid' : 'treegrid'}
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
              <GridRow key={index} index={index} row={row} columns={columns} y={y} height={rowHeight} isActive={index === active}
                isSelected={row !== undefined && props.isSelected(row)} place={row === undefined ? undefined : props.tree?.of(row)} onClick={(element) => onClick(index, row, element)} />
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** Returns the row to which a key moves from the active one, undefined if the key does not move. */
function rowAfter(key: string, active: number, { count, height, rowHeight }: VirtualRows): number | undefined {
  const page = Math.max(1, Math.floor(height / rowHeight) - 1);
  const moves: Readonly<Record<string, number>> = {
    ArrowUp: active - 1,
    ArrowDown: active + 1,
    PageUp: active - page,
    PageDown: active + page,
    Home: 0,
    End: count - 1,
  };
  const wanted = moves[key];
  return wanted === undefined ? undefined : Math.min(Math.max(0, wanted), Math.max(0, count - 1));
}

interface GridRowProps<Row> {
  readonly index: number;
  readonly row: Row | undefined; // undefined: has not come yet
  readonly columns: readonly Column<Row>[];
  readonly y: number;
  readonly height: number;
  readonly isActive: boolean;
  readonly isSelected: boolean;
  readonly place: { readonly depth: number; readonly isOpen: boolean | null } | undefined; // in a tree
  readonly onClick: (element: HTMLElement) => void;
}

function GridRow<Row>({ index, row, columns, y, height, isActive, isSelected, place, onClick }: GridRowProps<Row>) {
  return (
    <div
      id={`row-${index}`}
      class={`grid-row${isActive ? ' active' : ''}${row === undefined ? ' pending' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      aria-level={place === undefined ? undefined : place.depth + 1}
      aria-expanded={place?.isOpen ?? undefined}
      style={{ transform: `translateY(${y}px)`, height: `${height}px` }}
      onClick={(event) => onClick(event.currentTarget)}
    >
      {columns.map((column) => (
        <div key={column.id} role="gridcell" class={column.numeric ? 'cell numeric' : 'cell'}>
          {row === undefined ? '…' : column.cell(row)}
        </div>
      ))}
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
      title={column.hint}
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
