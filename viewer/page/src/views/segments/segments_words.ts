// Descriptions of segments and their contents.

import { words } from '../../base/words';
import { formatBytes, formatPercent } from '../../base/format_bytes';
import { plural } from '../../base/plural';
import type { Segments, SegmentState } from '../../data/protocol';
import { liveBytes, piecesOf, roundingOf, type GroupRow, type Piece } from './segments_layout';

export function groupWords(group: GroupRow): string {
  const free = formatBytes(group.bytes - group.live);
  return `${group.label}: ${plural(group.end - group.first, 'segment')}, ${formatBytes(group.bytes)}, ${free} of it not live`;
}

export function segmentWords(segment: SegmentState): string {
  const live = liveBytes(segment);
  const holes = piecesOf(segment).filter((piece) => piece.kind === 'hole');
  const largest = holes.reduce((most, hole) => Math.max(most, hole.bytes), 0);
  const parts = [
    `${segment.expandable ? 'Expandable segment' : 'Segment'} ${segment.address}`,
    formatBytes(segment.size),
    `${formatPercent(live, segment.size)} live in ${plural(segment.offset.length, 'block')}`,
    holes.length === 0 ? 'no hole' : `${plural(holes.length, 'hole')}, the largest ${formatBytes(largest)}`,
  ];
  return parts.join(', ');
}

export function pieceWords(segment: SegmentState, piece: Piece, categories: readonly string[]): string {
  const at = `at ${segment.address}+${formatBytes(piece.offset)}`;
  if (piece.kind === 'hole') return `Hole of ${formatBytes(piece.bytes)} ${at}`;
  const category = words(categories[segment.category[piece.index] ?? 0] ?? 'unknown');
  const rounding = roundingOf(segment, piece.index);
  const parts = [
    `${piece.kind === 'pending' ? 'Freed block, waiting for a stream,' : 'Block'} of ${formatBytes(piece.bytes)} ${at}`,
    category,
    rounding > 0 ? `${formatBytes(rounding)} of it lost to rounding` : '',
  ];
  return parts.filter((part) => part !== '').join(', ');
}

/** Returns the bytes of held blocks by category code, the largest first. */
export function heldByCategory({ segments }: Segments): readonly (readonly [code: number, bytes: number])[] {
  const held = new Map<number, number>();
  for (const { category, bytes, pending } of segments) {
    for (const [i, code] of category.entries()) if (pending[i] === 0) held.set(code, (held.get(code) ?? 0) + bytes[i]!);
  }
  return [...held].sort(([a, one], [b, two]) => two - one || a - b);
}
