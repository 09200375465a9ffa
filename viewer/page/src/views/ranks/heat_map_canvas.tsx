// The canvas of the heat map, with its mouse and key handling. Only visible rows are drawn.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Ranks } from '../../data/protocol';
import { CanvasTree, type TreeItem } from '../../widgets/canvas_tree';
import { useCanvas } from '../../widgets/use_canvas';
import { cellWords, columnCount, HEADING, layOut, movedSpot, scaleOf, spotAt, type HeatMapLayout, type Spot } from './heat_map';
import { drawHeatMap } from './heat_map_draw';

const ITEMS_AROUND = 10;

interface HeatMapCanvasProps {
  readonly ranks: Ranks;
  readonly spot: Spot; // of the keys
  readonly onSpot: (spot: Spot) => void;
  readonly onPoint: (spot: Spot | null) => void;
  readonly onOpen: (spot: Spot) => void;
}

export function HeatMapCanvas({ ranks, spot, onSpot, onPoint, onOpen }: HeatMapCanvasProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const scale = useMemo(() => scaleOf(ranks), [ranks]);
  const { canvas, size } = useCanvas(
    (context, { width, height }, theme) => drawHeatMap(context, { ranks, layout: layOut(ranks, width, height), scale, spot, top, width, height, theme }),
    [ranks, spot, top],
  );
  const layout = layOut(ranks, size.width, size.height);
  useShownRow(scroller, layout, spot.row);
  const at = (event: MouseEvent): Spot | null => (event.offsetY < HEADING ? null : spotAt(ranks, layout, event.offsetX, event.offsetY + top));
  const onKey = (event: KeyboardEvent): boolean => {
    if (event.key === 'Enter' || event.key === ' ') {
      onOpen(spot);
      return true;
    }
    const moved = movedSpot(ranks, spot, event.key);
    if (moved !== null) onSpot(moved);
    return moved !== null;
  };
  return (
    <div class="heat-map-scroll" ref={scroller} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <CanvasTree class="heat-map" label={`Peaks of ${ranks.rows.length} ranks by step`} items={itemsAround(ranks, spot)} active={idOf(spot)} onKey={onKey}>
        <canvas
          ref={canvas}
          aria-hidden="true"
          onMouseMove={(event) => onPoint(at(event))}
          onMouseLeave={() => onPoint(null)}
          onClick={(event) => {
            const clicked = at(event);
            if (clicked !== null) onOpen(clicked);
          }}
        />
        <div aria-hidden="true" style={{ height: `${Math.max(0, layout.height - size.height)}px` }} />
      </CanvasTree>
    </div>
  );
}

/** Scrolls as little as possible to show a row. */
function useShownRow(scroller: { readonly current: HTMLDivElement | null }, { rowHeight }: HeatMapLayout, row: number): void {
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const y = row * rowHeight; // below the headings, which do not scroll
    const room = element.clientHeight - HEADING - rowHeight;
    if (y < element.scrollTop) element.scrollTop = y;
    if (y > element.scrollTop + room) element.scrollTop = y - room;
  }, [row, rowHeight]);
}

function idOf({ row, column }: Spot): string {
  return `rank-${row}-${column}`;
}

function itemsAround(ranks: Ranks, spot: Spot): TreeItem[] {
  const items: TreeItem[] = [];
  const end = Math.min(ranks.rows.length, spot.row + ITEMS_AROUND + 1);
  for (let row = Math.max(0, spot.row - ITEMS_AROUND); row < end; ++row) {
    const { name, differs } = ranks.rows[row]!;
    items.push({ id: `rank-${row}`, level: 1, label: differs ? `${name} differs` : name, expanded: row === spot.row });
    if (row !== spot.row) continue;
    for (let column = 0; column < columnCount(ranks); ++column) {
      items.push({ id: idOf({ row, column }), level: 2, label: cellWords(ranks, row, column), expanded: undefined });
    }
  }
  return items;
}
