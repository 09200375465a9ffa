import { describe, expect, it } from 'vitest';
import { ALL_EVENT_KINDS, NO_ROW, type EventRow } from '../../data/protocol';
import { bitOf, countOf, eventWords, KIND_GROUPS, selectionOf } from './event_words';

const ROW: EventRow = { event: 7, ns: 9, kind: 'alloc', row: 3, bytes: 2 << 20, address: '0x1000', heap: 'pytorch', stream: '0x0', text: 'main (train.py:2)' };

describe('the words of an entry', () => {
  it('have its size, and its heap if it is not that of the lane', () => {
    expect(eventWords(ROW, 'pytorch')).toBe('alloc 2.00 MiB');
    expect(eventWords({ ...ROW, heap: 'driver' }, 'pytorch')).toBe('alloc 2.00 MiB of driver');
    expect(eventWords({ ...ROW, kind: 'segment_free', heap: 'driver' }, 'pytorch')).toBe('segment free 2.00 MiB');
    expect(eventWords({ ...ROW, kind: 'mark', bytes: null, heap: '' }, 'pytorch')).toBe('mark');
  });

  it('lead to the block, or to the moment', () => {
    expect(selectionOf(ROW)).toEqual({ kind: 'block', row: 3 });
    expect(selectionOf({ ...ROW, row: NO_ROW })).toEqual({ kind: 'instant', event: 7 });
  });
});

describe('the groups of kinds', () => {
  it('contain each kind once', () => {
    expect(KIND_GROUPS.reduce((sum, { kinds }) => sum + kinds, 0)).toBe(ALL_EVENT_KINDS);
    expect(KIND_GROUPS.reduce((bits, { kinds }) => bits | kinds, 0)).toBe(ALL_EVENT_KINDS);
  });

  it('are counted', () => {
    expect(countOf(bitOf('free') | bitOf('free_completed'), [1, 20, 300, 4000, 5])).toBe(4020);
  });
});
