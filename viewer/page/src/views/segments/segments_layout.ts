// Lays out segments and their contents. Pure. Segments of one pool and stream are grouped under one
// heading, because free memory in one group cannot serve another. Each group has its own scale: its
// largest segment fills the width.

import { upperBound } from '../../base/binary_search';
import type { Segments, SegmentState } from '../../data/protocol';

export const HEADING_HEIGHT = 26; // px
export const SEGMENT_HEIGHT = 22;
const NARROWEST_SEGMENT = 2 / 1000; // of the width

export interface GroupRow {
  readonly kind: 'group';
  readonly y: number;
  readonly label: string;
  readonly first: number; // segments [first, end)
  readonly end: number;
  readonly bytes: number;
  readonly live: number;
}
export interface SegmentRow {
  readonly kind: 'segment';
  readonly y: number;
  readonly segment: number;
  readonly width: number; // fraction
}
export type Row = GroupRow | SegmentRow;

export interface SegmentsLayout {
  readonly rows: readonly Row[];
  readonly height: number;
}

export function layOutSegments(segments: readonly SegmentState[]): SegmentsLayout {
  const rows: Row[] = [];
  let y = 0;
  for (let first = 0; first < segments.length; ) {
    let end = first;
    while (end < segments.length && inSameGroup(segments[first]!, segments[end]!)) end++;
    const members = segments.slice(first, end);
    const largest = members.reduce((most, each) => Math.max(most, each.size), 1);
    rows.push({
      kind: 'group',
      y,
      label: groupLabel(segments[first]!),
      first,
      end,
      bytes: sum(members.map((each) => each.size)),
      live: sum(members.map(liveBytes)),
    });
    y += HEADING_HEIGHT;
    for (let segment = first; segment < end; segment++) {
      const width = Math.max(NARROWEST_SEGMENT, segments[segment]!.size / largest);
      rows.push({ kind: 'segment', y, segment, width });
      y += SEGMENT_HEIGHT;
    }
    first = end;
  }
  return { rows, height: y };
}

function inSameGroup(a: SegmentState, b: SegmentState): boolean {
  return a.pool === b.pool && a.stream === b.stream;
}

function groupLabel(segment: SegmentState): string {
  const parts = [segment.pool, segment.stream === '' ? '' : `stream ${segment.stream}`].filter((part) => part !== '');
  return parts.length === 0 ? 'segments' : parts.join(', ');
}

export function liveBytes(segment: SegmentState): number {
  return sum(segment.bytes.filter((_, i) => segment.pending[i] !== 1));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Returns the index of the row at `y`, or -1 if there is none. */
export function rowAt(layout: SegmentsLayout, y: number): number {
  if (y < 0 || y >= layout.height) return -1;
  return upperBound(layout.rows.map((row) => row.y), y) - 1;
}

/** A block or a hole in a segment; pieces are in order. */
export interface Piece {
  readonly kind: 'block' | 'pending' | 'hole';
  readonly offset: number;
  readonly bytes: number;
  readonly index: number; // of the segment's columns; -1: a hole
}

export function piecesOf(segment: SegmentState): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  segment.offset.forEach((offset, index) => {
    if (offset > at) pieces.push({ kind: 'hole', offset: at, bytes: offset - at, index: -1 });
    const bytes = segment.bytes[index]!;
    pieces.push({ kind: segment.pending[index] === 1 ? 'pending' : 'block', offset, bytes, index });
    at = Math.max(at, offset + bytes);
  });
  if (segment.size > at) pieces.push({ kind: 'hole', offset: at, bytes: segment.size - at, index: -1 });
  return pieces;
}

/** Returns the index of the piece that contains the byte at `offset`, or -1 if there is none. */
export function pieceAt(pieces: readonly Piece[], offset: number): number {
  const at = upperBound(pieces.map((piece) => piece.offset), offset) - 1;
  const piece = pieces[at];
  return piece !== undefined && offset < piece.offset + piece.bytes ? at : -1;
}

/** Returns the bytes that rounding adds to a block, or 0 if the requested size is unknown. */
export function roundingOf(segment: SegmentState, index: number): number {
  const requested = segment.requested[index] ?? -1;
  return requested < 0 ? 0 : Math.max(0, segment.bytes[index]! - requested);
}

/**
 * Returns the place of the piece that lies at an address, or null if no segment contains it.
 */
export function placeOfAddress({ segments }: Pick<Segments, 'segments'>, address: string): { readonly segment: number; readonly piece: number } | null {
  const at = Number(address); // addresses have at most 48 bits
  if (address === '' || at === 0) return null;
  const segment = segments.findIndex((each) => Number(each.address) > 0 && at >= Number(each.address) && at < Number(each.address) + each.size);
  if (segment < 0) return null;
  return { segment, piece: pieceAt(piecesOf(segments[segment]!), at - Number(segments[segment]!.address)) };
}

/** Returns the place of the block of that row, or null if it is in no segment. */
export function placeOfRow(segments: Segments, row: number): { readonly segment: number; readonly piece: number } | null {
  for (let segment = 0; segment < segments.segments.length; segment++) {
    const index = segments.segments[segment]!.row.indexOf(row);
    if (index < 0) continue;
    return { segment, piece: piecesOf(segments.segments[segment]!).findIndex((piece) => piece.index === index) };
  }
  return null;
}
