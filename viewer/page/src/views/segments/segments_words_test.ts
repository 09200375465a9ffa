import { expect, it } from 'vitest';
import type { SegmentState, Segments } from '../../data/protocol';
import { heldByCategory } from './segments_words';

function segment(...blocks: readonly (readonly [code: number, bytes: number, pending?: 1])[]): SegmentState {
  return {
    address: '0x1000', size: 4096, pool: 'large', stream: '0x0', expandable: false, stack: 0,
    offset: blocks.map(() => 0), bytes: blocks.map(([, bytes]) => bytes), requested: blocks.map(() => -1),
    row: blocks.map((_, i) => i), pending: blocks.map(([, , pending]) => pending ?? 0), category: blocks.map(([code]) => code), key: blocks.map(() => 0),
  };
}

it('adds up what categories hold in all segments, without blocks that wait for a stream', () => {
  const segments: Segments = {
    event: 1, ns: 1, what: '', row: 0, live_bytes: 0, reserved_bytes: 0, largest_hole: 0,
    segments: [segment([1, 100], [2, 50, 1]), segment([2, 300], [1, 20])],
  };
  expect(heldByCategory(segments)).toEqual([[2, 300], [1, 120]]);
  expect(heldByCategory({ ...segments, segments: [] })).toEqual([]);
});
