// Draws segments on a canvas.

import { formatBytes } from '../../base/format_bytes';
import type { Segments, SegmentState } from '../../data/protocol';
import { hatch } from '../../render/hatching';
import { hueOfCategory, SHADES } from '../../render/palette';
import type { SiteColors } from '../../render/site_colors';
import type { Theme } from '../../render/theme';
import type { PieceTest } from './passing_rows';
import { HEADING_HEIGHT, piecesOf, roundingOf, SEGMENT_HEIGHT, type SegmentsLayout } from './segments_layout';

const FADED = 0.22; // opacity of blocks that do not match the filter
export const LEFT_MARGIN = 176; // px, for the address and the size of a segment
const SIZE_RIGHT = LEFT_MARGIN - 8;

export interface SegmentsPicture {
  readonly segments: Segments;
  readonly layout: SegmentsLayout;
  readonly categories: readonly string[];
  readonly sites: SiteColors | null; // null: colours show categories
  readonly selectedRow: number | null;
  readonly passes: PieceTest | null; // null: there is no filter
  readonly spot: { readonly segment: number; readonly piece: number };
  readonly top: number; // px scrolled
  readonly width: number;
  readonly height: number;
  readonly theme: Theme;
}

export function drawSegments(context: CanvasRenderingContext2D, picture: SegmentsPicture): void {
  const { layout, segments, top, width, height, theme } = picture;
  context.textBaseline = 'middle';
  for (const row of layout.rows) {
    const y = row.y - top;
    if (y > height || y + HEADING_HEIGHT < 0) continue;
    if (row.kind === 'group') {
      context.font = 'bold 12px system-ui, sans-serif';
      context.fillStyle = theme.fg;
      const words = `${row.label}  ${formatBytes(row.live)} of ${formatBytes(row.bytes)} live`;
      context.fillText(words, 0, y + HEADING_HEIGHT / 2 + 2);
      continue;
    }
    const segment = segments.segments[row.segment]!;
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = theme.muted;
    context.fillText(segment.address, 0, y + SEGMENT_HEIGHT / 2);
    context.textAlign = 'right';
    context.fillText(formatBytes(segment.size), SIZE_RIGHT, y + SEGMENT_HEIGHT / 2);
    context.textAlign = 'left';
    drawSegment(context, picture, segment, row.segment, y + 2, (width - LEFT_MARGIN) * row.width);
  }
}

function drawSegment(
  context: CanvasRenderingContext2D,
  { categories, sites, selectedRow, passes, spot, theme }: SegmentsPicture,
  segment: SegmentState,
  index: number,
  y: number,
  width: number,
): void {
  const high = SEGMENT_HEIGHT - 4;
  const scale = width / segment.size;
  context.fillStyle = theme.panel;
  context.fillRect(LEFT_MARGIN, y, width, high);
  let drawnTo = -Infinity;
  piecesOf(segment).forEach((piece, at) => {
    const left = LEFT_MARGIN + piece.offset * scale;
    const right = left + piece.bytes * scale;
    const isSpot = spot.segment === index && spot.piece === at;
    const isSelected = piece.index >= 0 && segment.row[piece.index] === selectedRow;
    if (piece.kind === 'hole') hatch(context, left, y, right - left, high, '/', theme.line);
    if (piece.kind !== 'hole' && right > drawnTo + 0.25) {
      const wide = Math.max(0.5, right - left - (right - left > 3 ? 1 : 0));
      context.fillStyle = sites === null ? SHADES[theme.scheme][hueOfCategory(categories[segment.category[piece.index]!] ?? 'unknown')] : sites.colorOf(segment.key[piece.index]!);
      const isFaded = passes !== null && !passes(segment, piece.index);
      context.globalAlpha = (piece.kind === 'pending' ? 0.5 : 1) * (isFaded ? FADED : 1);
      context.fillRect(left, y, wide, high);
      context.globalAlpha = 1;
      if (piece.kind === 'pending' && !isFaded) hatch(context, left, y, wide, high, '/', '#000');
      const lost = roundingOf(segment, piece.index) * scale;
      if (lost >= 2 && !isFaded) hatch(context, left + wide - lost, y, lost, high, '\\', 'rgb(0 0 0 / 70%)');
      drawnTo = right;
    }
    if (isSpot || isSelected) {
      context.strokeStyle = theme.fg;
      context.lineWidth = 2;
      context.strokeRect(left, y, Math.max(2, right - left), high);
    }
  });
  context.strokeStyle = spot.segment === index && spot.piece < 0 ? theme.fg : theme.line;
  context.lineWidth = spot.segment === index && spot.piece < 0 ? 2 : 1;
  context.strokeRect(LEFT_MARGIN + 0.5, y + 0.5, Math.max(1, width - 1), high - 1);
}
