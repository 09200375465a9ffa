import { describe, expect, it } from 'vitest';
import { ALL_EVENT_KINDS, EVENT_KINDS, NEVER, NO_ROW, type EventKind, type EventRow, type FileMeta, type Omitted } from '../protocol';
import { EventList } from './event_list';
import type { StackTable } from './file_data';
import type { LoadedLane } from './loaded_lane';

const side = (event: number, kind: EventKind): EventRow => ({ event, ns: event, kind, row: NO_ROW, bytes: null, address: '', heap: '', stream: '', text: kind });

/** Two blocks: one from event 1 to 3 that waits for a stream, one from event 2 on. */
function listOf(omitted: Omitted | null, total: number): EventList {
  const blocks = {
    count: 2, row: Uint32Array.of(7, 8), birth: Uint32Array.of(1, 2), death: Uint32Array.of(3, NEVER), completed: Uint32Array.of(5, NEVER),
    kind: Uint32Array.of(0, 0), space: Uint32Array.of(0, 0), offset: Float64Array.of(4096, 8192),
  };
  const kinds = { size: Float64Array.of(512), stack: Uint32Array.of(1), forward: Uint32Array.of(0), stream: Uint16Array.of(0) };
  const lane = { meta: { heap: 'pytorch' }, data: { blocks, kinds, waited: new Map(), spaces: [], spaceBegin: [] } } as unknown as LoadedLane;
  return new EventList({
    meta: { streams: ['unknown'], omitted } as unknown as FileMeta,
    lanes: [lane],
    side: { rows: [side(0, 'mark'), side(2, 'failed'), side(4, 'segment_free'), side(5, 'free_completed')], total },
    stacks: { labelOf: () => 'main (train.py:2)' } as unknown as StackTable,
    ns: Float64Array.of(0, 1, 2, 3, 4, 5),
  });
}

describe('the events of a standalone file', () => {
  const ask = (list: EventList, kinds: number, event = 0, offset = 0) => list.answer({ file: 0, lane: 0, kinds, offset, limit: 100, event });

  it('are those of its blocks and the others, in order', () => {
    const { rows, total, counts, note } = ask(listOf(null, 4), ALL_EVENT_KINDS);
    expect(rows.map(({ event, kind, row }) => [event, kind, row])).toEqual([
      [0, 'mark', NO_ROW], [1, 'alloc', 7], [2, 'alloc', 8], [2, 'failed', NO_ROW], [3, 'free_requested', 7], [4, 'segment_free', NO_ROW], [5, 'free_completed', NO_ROW],
    ]);
    expect(rows[1]).toMatchObject({ ns: 1, bytes: 512, address: '0x1000', heap: 'pytorch', text: 'main (train.py:2)' });
    expect([total, counts[EVENT_KINDS.indexOf('alloc')], note]).toEqual([7, 2, '']);
  });

  it('are found by their event, or by the last one before it', () => {
    const list = listOf(null, 4);
    expect([0, 1, 2, 3].map((event) => ask(list, ALL_EVENT_KINDS, event).position)).toEqual([0, 1, 2, 4]);
    const allocs = 2 ** EVENT_KINDS.indexOf('alloc');
    expect([0, 1, 2, 5].map((event) => ask(list, allocs, event).position)).toEqual([0, 0, 1, 1]);
    expect(ask(list, allocs, 0, 1).rows.map(({ row }) => row)).toEqual([8]);
    expect(() => ask(list, allocs, 6)).toThrow('events go from 0 to 5');
  });

  it('name what the file lacks', () => {
    const omitted = { blocks: 1200, smaller_than: 512, peak_bytes: 9, time_error_ns: 0 };
    expect(ask(listOf(omitted, 30_000), ALL_EVENT_KINDS).note).toBe(
      'The events of 1,200 small blocks are not in this file. Only the first 4 of 30,000 events other than allocations and frees are in this file. The recording itself has them: gpumemtrace view',
    );
  });
});
