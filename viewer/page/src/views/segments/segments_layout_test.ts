import { describe, expect, it } from 'vitest';
import type { Segments, SegmentState } from '../../data/protocol';
import {
  HEADING_HEIGHT,
  layOutSegments,
  pieceAt,
  piecesOf,
  placeOfAddress,
  placeOfRow,
  rowAt,
  roundingOf,
  SEGMENT_HEIGHT,
} from './segments_layout';

function segment(size: number, blocks: readonly (readonly [number, number])[], more: Partial<SegmentState> = {}): SegmentState {
  return {
    address: '0x7f00',
    size,
    pool: 'large',
    stream: '0x0',
    expandable: false,
    stack: 1,
    offset: blocks.map(([offset]) => offset),
    bytes: blocks.map(([, bytes]) => bytes),
    requested: blocks.map(([, bytes]) => bytes - 3),
    row: blocks.map((_, i) => 10 + i),
    pending: blocks.map(() => 0),
    category: blocks.map(() => 0),
    key: blocks.map(() => 0),
    ...more,
  };
}

describe('segments', () => {
  it('are grouped by pool and stream, each group with its own scale', () => {
    const layout = layOutSegments([
      segment(400, [[0, 100]]),
      segment(100, []),
      segment(50, [], { stream: '0x1' }),
    ]);
    expect(layout.rows).toMatchObject([
      { kind: 'group', y: 0, label: 'large, stream 0x0', bytes: 500, live: 100, first: 0, end: 2 },
      { kind: 'segment', y: HEADING_HEIGHT, segment: 0, width: 1 },
      { kind: 'segment', segment: 1, width: 0.25 },
      { kind: 'group', label: 'large, stream 0x1', bytes: 50, live: 0 },
      { kind: 'segment', segment: 2, width: 1 },
    ]);
    expect(layout.height).toBe(2 * HEADING_HEIGHT + 3 * SEGMENT_HEIGHT);
  });

  it('do not count blocks that wait for a stream as live', () => {
    const layout = layOutSegments([segment(100, [[0, 40], [40, 20]], { pending: [0, 1] })]);
    expect(layout.rows[0]).toMatchObject({ live: 40 });
  });

  it('are found by the row under the mouse', () => {
    const layout = layOutSegments([segment(100, []), segment(100, [])]);
    expect(rowAt(layout, -1)).toBe(-1);
    expect(rowAt(layout, 0)).toBe(0);
    expect(rowAt(layout, HEADING_HEIGHT)).toBe(1);
    expect(rowAt(layout, layout.height - 1)).toBe(2);
    expect(rowAt(layout, layout.height)).toBe(-1);
  });

  it('are empty if nothing is reserved', () => expect(layOutSegments([])).toEqual({ rows: [], height: 0 }));
});

describe('pieces', () => {
  it('cover a segment without gap or overlap', () => {
    const pieces = piecesOf(segment(100, [[10, 20], [30, 5], [90, 10]], { pending: [0, 1, 0] }));
    expect(pieces.map(({ kind, offset, bytes }) => [kind, offset, bytes])).toEqual([
      ['hole', 0, 10],
      ['block', 10, 20],
      ['pending', 30, 5],
      ['hole', 35, 55],
      ['block', 90, 10],
    ]);
  });

  it('of an empty segment are one hole', () => {
    expect(piecesOf(segment(7, []))).toEqual([{ kind: 'hole', offset: 0, bytes: 7, index: -1 }]);
  });

  it('are found by offset', () => {
    const pieces = piecesOf(segment(100, [[10, 20]]));
    expect([0, 9, 10, 29, 30, 99, 100].map((offset) => pieceAt(pieces, offset))).toEqual([0, 0, 1, 1, 2, 2, -1]);
  });

  it('lose bytes to rounding if the requested size is known', () => {
    expect(roundingOf(segment(100, [[0, 10]]), 0)).toBe(3);
    expect(roundingOf(segment(100, [[0, 10]], { requested: [-1] }), 0)).toBe(0);
  });

  it('are found by the row of their block', () => {
    const segments = { segments: [segment(9, []), segment(100, [[0, 5], [50, 5]])] } as unknown as Segments;
    expect(placeOfRow(segments, 11)).toEqual({ segment: 1, piece: 2 });
    expect(placeOfRow(segments, 99)).toBeNull();
  });

  it('are found by address', () => {
    const segments = { segments: [{ ...segment(500, [[0, 500]]), address: '0x0' }, { ...segment(100, [[10, 20]]), address: '0x100' }] };
    expect(placeOfAddress(segments, '0x100')).toEqual({ segment: 1, piece: 0 });
    expect(placeOfAddress(segments, '0x10b')).toEqual({ segment: 1, piece: 1 });
    expect(placeOfAddress(segments, '0x164')).toBeNull(); // its end; what is in no segment has no address
    expect(placeOfAddress(segments, '')).toBeNull();
  });
});
