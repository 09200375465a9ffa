// The canvas of the segments, with its mouse and key handling. Only visible rows are drawn.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { EventRow, Segments } from '../../data/protocol';
import { SiteColors } from '../../render/site_colors';
import { CanvasTree, type TreeItem } from '../../widgets/canvas_tree';
import { useCanvas } from '../../widgets/use_canvas';
import type { PieceTest } from './passing_rows';
import { drawSegments, LEFT_MARGIN } from './segments_draw';
import {
  layOutSegments,
  pieceAt,
  piecesOf,
  placeOfAddress,
  placeOfRow,
  rowAt,
  SEGMENT_HEIGHT,
  type GroupRow,
  type SegmentsLayout,
} from './segments_layout';
import { groupWords, pieceWords, segmentWords } from './segments_words';

const ITEMS_AROUND = 10;

/** A segment and a piece of it; piece -1 is the segment itself. */
export interface Spot {
  readonly segment: number;
  readonly piece: number;
}

export interface SegmentsCanvasProps {
  readonly segments: Segments;
  readonly categories: readonly string[];
  readonly sites: readonly number[] | null; // LaneMeta; null: colours show categories
  readonly selectedRow: number | null;
  readonly passes: PieceTest | null; // null: there is no filter
  readonly onSpot: (spot: Spot) => void;
  readonly spot: Spot;
}

export function SegmentsCanvas(props: SegmentsCanvasProps) {
  const { segments, spot } = props;
  const layout = useMemo(() => layOutSegments(segments.segments), [segments]);
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [hint, setHint] = useState('');
  const { canvas, size } = useCanvas(
    (context, { width, height }, theme) => drawSegments(context, { ...props, sites: props.sites === null ? null : new SiteColors(props.sites, theme), layout, top, width, height, theme }),
    [layout, top, spot, props.sites, props.selectedRow, props.passes],
  );
  useEffect(() => {
    const row = layout.rows.find((each) => each.kind === 'segment' && each.segment === spot.segment);
    const element = scroller.current;
    if (row === undefined || element === null) return;
    if (row.y < element.scrollTop) element.scrollTop = row.y - SEGMENT_HEIGHT;
    if (row.y + SEGMENT_HEIGHT > element.scrollTop + element.clientHeight) {
      element.scrollTop = row.y + 2 * SEGMENT_HEIGHT - element.clientHeight;
    }
  }, [spot.segment, layout]);

  const spotAt = (event: MouseEvent): Spot | null => {
    const row = layout.rows[rowAt(layout, event.offsetY + top)];
    if (row?.kind !== 'segment') return null;
    const state = segments.segments[row.segment]!;
    const along = (event.offsetX - LEFT_MARGIN) / Math.max(1, (size.width - LEFT_MARGIN) * row.width);
    return { segment: row.segment, piece: pieceAt(piecesOf(state), along * state.size) };
  };
  const words = (at: Spot | null): string => {
    const state = at === null ? undefined : segments.segments[at.segment];
    if (at === null || state === undefined) return '';
    const piece = piecesOf(state)[at.piece];
    return piece === undefined ? segmentWords(state) : pieceWords(state, piece, props.categories);
  };

  return (
    <div
      class="segments-scroll"
      ref={scroller}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <CanvasTree
        class="segments"
        label={`Segments by pool and stream: ${segments.segments.length}`}
        items={itemsAround(props, layout)}
        active={idOf(spot)}
        onKey={(event) => moveSpot(event.key, props)}
      >
        <canvas
          ref={canvas}
          aria-hidden="true"
          title={hint}
          onMouseMove={(event) => setHint(words(spotAt(event)))}
          onClick={(event) => {
            const at = spotAt(event);
            if (at !== null) props.onSpot(at);
          }}
        />
        <div aria-hidden="true" style={{ height: `${Math.max(0, layout.height - size.height)}px` }} />
      </CanvasTree>
    </div>
  );
}

function idOf(spot: Spot): string {
  return spot.piece < 0 ? `segment-${spot.segment}` : `piece-${spot.segment}-${spot.piece}`;
}

/** Moves the spot: left and right through the pieces of a segment, up and down through segments. */
function moveSpot(key: string, { segments, spot, onSpot }: SegmentsCanvasProps): boolean {
  const count = segments.segments.length;
  const pieces = (segment: number): number => piecesOf(segments.segments[segment]!).length;
  if (count === 0) return false;
  const to = (segment: number, piece: number): boolean => {
    const inside = Math.min(Math.max(0, segment), count - 1);
    onSpot({ segment: inside, piece: Math.min(Math.max(-1, piece), pieces(inside) - 1) });
    return true;
  };
  switch (key) {
    case 'ArrowLeft':
      return to(spot.segment, spot.piece - 1);
    case 'ArrowRight':
      return to(spot.segment, spot.piece + 1);
    case 'ArrowUp':
      return to(spot.segment - 1, -1);
    case 'ArrowDown':
      return to(spot.segment + 1, -1);
    case 'Home':
      return to(0, -1);
    case 'End':
      return to(count - 1, -1);
    default:
      return false;
  }
}

function itemsAround({ segments, spot, categories }: SegmentsCanvasProps, layout: SegmentsLayout): TreeItem[] {
  const items: TreeItem[] = [];
  const groups = layout.rows.filter((row): row is GroupRow => row.kind === 'group');
  groups.forEach((group, i) => {
    const inside = group.first <= spot.segment && spot.segment < group.end;
    items.push({ id: `group-${i}`, level: 1, label: groupWords(group), expanded: inside });
    if (!inside) return;
    const first = Math.max(group.first, spot.segment - ITEMS_AROUND);
    for (let s = first; s < Math.min(group.end, spot.segment + ITEMS_AROUND + 1); s++) {
      const state = segments.segments[s]!;
      items.push({ id: `segment-${s}`, level: 2, label: segmentWords(state), expanded: s === spot.segment });
      if (s !== spot.segment) continue;
      piecesOf(state).forEach((piece, p) => {
        if (Math.abs(p - spot.piece) > ITEMS_AROUND) return;
        items.push({ id: `piece-${s}-${p}`, level: 3, label: pieceWords(state, piece, categories), expanded: undefined });
      });
    }
  });
  return items;
}

/**
 * Returns the initial spot: the block that the event is about, what lies at the address of its entry in
 * the list of events, or the first segment.
 */
export function spotOf(segments: Segments, entry: EventRow | null): Spot {
  const own = entry !== null && entry.event === segments.event ? entry : null;
  const place = placeOfRow(segments, own?.row ?? segments.row) ?? placeOfAddress(segments, own?.address ?? '');
  return place ?? { segment: 0, piece: -1 };
}
