import { expect, it } from 'vitest';
import type { Scope, SegmentState } from '../../data/protocol';
import { NO_FILTER } from '../../state/state';
import { recordedSource } from '../../testing/recordings';
import { pieceTest, rowsOf } from './passing_rows';

const source = recordedSource();
const { peak_event: peak } = (await source.meta()).files[0]!.lanes[0]!;
const filter = { ...NO_FILTER, category: 'activations' };
const scope: Scope = { file: 0, lane: 0, filter, of: 'live', from: 0, to: peak };

it('collects all pages of the held blocks', async () => {
  const whole = (await source.find(scope, 0xffffffff, 10_000)).rows;
  expect(whole.length).toBeGreaterThan(6);
  expect([...(await rowsOf(source, scope, undefined, 3))]).toEqual(whole);
  expect((await rowsOf(source, { ...scope, filter: { ...filter, min_size: 2 ** 40 } })).size).toBe(0);
});

it('matches held blocks by row, and waiting ones by their columns', () => {
  const segment = { row: [1, 2, 3, 4], pending: [0, 0, 1, 1], category: [0, 0, 4, 5], bytes: [8, 8, 8, 8], key: [0, 0, 0, 0] } as unknown as SegmentState;
  const passes = pieceTest(new Set([2]), filter, ['a', 'b', 'c', 'd', 'activations', 'e']);
  expect([0, 1, 2, 3].map((index) => passes(segment, index))).toEqual([false, true, true, false]);
});
