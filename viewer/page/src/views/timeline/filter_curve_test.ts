import { afterEach, expect, it, vi } from 'vitest';
import { midpointOf } from '../../data/columns';
import type { DataSource } from '../../data/data_source';
import type { FileProgress, Filter, PassingCurve, Progress, Window } from '../../data/protocol';
import { scopeOf } from '../../state/scope';
import { INITIAL_STATE, NO_FILTER, type State } from '../../state/state';
import { blocksOf, recordedSource } from '../../testing/recordings';
import { askAtCursor, bytesAt, cursorKey, cursorQuery, FilterCurve, filterWords } from './filter_curve';

const source = recordedSource();
const { events } = (await source.meta()).files[0]!;
const SMALL: Filter = { ...NO_FILTER, max_size: 2 ** 20 };

async function pictureOf(from: number, to: number, stage = 'ready') {
  const window: Window = { file: 0, lane: 0, axis: 'event', from, to, columns: 100 };
  return { subject: { file: 0, lane: 0, axis: 'event', layout: 'stacked', stage, window: 0 }, curve: await source.curve(window) } as const;
}

/** Returns a curve, and the promise of its first answer. */
function looking() {
  let notify = (): void => undefined;
  const answered = new Promise<void>((resolve) => (notify = resolve));
  return { curve: new FilterCurve(source, notify), answered };
}

afterEach(() => void vi.restoreAllMocks());

it('includes blocks that are too small to be drawn', async () => {
  const picture = await pictureOf(0, events);
  const { curve, answered } = looking();
  expect(curve.look(picture, SMALL)).toBeNull();
  await answered;
  const passing = curve.look(picture, SMALL)!;
  const { birth, death, size } = await blocksOf(source, SMALL);
  picture.curve.peak.forEach((event, c) => {
    const held = size.filter((_, i) => birth[i]! <= event && event < death[i]!);
    expect(passing.live[c]).toBe(held.reduce((sum, bytes) => sum + bytes, 0));
  });
  expect(Math.max(...passing.live)).toBeGreaterThan(0);
});

it('is requested once per picture, and stays until the next one has come', async () => {
  const ask = vi.spyOn(source as DataSource, 'passing');
  const [one, two] = [await pictureOf(0, 100), await pictureOf(50, 150)];
  const { curve, answered } = looking();
  for (let i = 0; i < 3; ++i) curve.look(one, SMALL);
  expect(ask).toHaveBeenCalledTimes(1);
  await answered;
  const known = curve.look(one, SMALL);
  expect(known!.query.from).toBe(0);
  expect(curve.look(two, SMALL)).toBe(known);
  expect(ask).toHaveBeenCalledTimes(2);
  expect(curve.look(two, { ...SMALL })).toBeNull(); // another filter has another curve
  expect(ask.mock.calls.map(([, signal]) => signal!.aborted)).toEqual([true, true, false]); // only the last one is wanted
});

it('is not requested without a filter, nor before blocks are known', async () => {
  const ask = vi.spyOn(source as DataSource, 'passing');
  const { curve } = looking();
  expect(curve.look(await pictureOf(0, 100), NO_FILTER)).toBeNull();
  expect(curve.look(await pictureOf(0, 100, 'coarse'), SMALL)).toBeNull();
  expect(ask).not.toHaveBeenCalled();
});

it('returns the bytes of the column that contains a position', () => {
  const window: Window = { file: 0, lane: 0, axis: 'time', from: 100, to: 130, columns: 3 };
  const curve: PassingCurve = { query: { ...window, filter: SMALL }, live: Float64Array.of(1, 2, NaN) };
  expect([0, 1, 2].map((c) => bytesAt(curve, midpointOf(window, c)))).toEqual([1, 2, null]);
  expect([bytesAt(curve, 99), bytesAt(curve, 130)]).toEqual([null, null]);
});

async function stateWith(change: Partial<State>): Promise<State> {
  return { ...INITIAL_STATE, meta: await source.meta(), progress: at('ready'), filter: SMALL, ...change };
}

function at(state: FileProgress['state']): Progress {
  return { files: [{ file: 0, state, what: '', fraction: 1, error: '' }] };
}

it.each([null, 17, 400])('equals at the cursor the total of the table there: %s', async (cursor) => {
  const state = await stateWith({ cursor });
  const answer = await askAtCursor(source, cursorQuery(state)!, new AbortController().signal);
  const table = await source.table({ ...scopeOf(state)!, by: 'stack', sort: 'bytes', descending: true, offset: 0, limit: 1, sparkline: 0 });
  expect(answer).toEqual({ filter: SMALL, bytes: table.total_bytes });
});

it('says what moment the number is of, and ignores an answer to another filter', async () => {
  const state = await stateWith({ cursor: 400 });
  const answer = { filter: SMALL, bytes: 3 * 2 ** 20 };
  expect(filterWords(state, answer)).toBe('3.00 MiB at the cursor');
  expect(filterWords({ ...state, cursor: null }, answer)).toBe('3.00 MiB at the peak');
  expect(filterWords({ ...state, cursor: null, following: true }, answer)).toBe('3.00 MiB now');
  expect(filterWords({ ...state, filter: { ...SMALL } }, answer)).toBe('');
  expect(filterWords(state, null)).toBe('');
});

it('has a key for each question, and none if there is nothing to ask', async () => {
  const state = await stateWith({ cursor: 400 });
  expect(cursorKey(state)).not.toBe(cursorKey({ ...state, cursor: 401 }));
  expect(cursorKey({ ...state, filter: NO_FILTER })).toBeNull();
  expect(cursorKey({ ...state, progress: at('coarse') })).toBeNull();
  expect(cursorKey({ ...state, progress: null })).toBeNull();
  expect(cursorKey(INITIAL_STATE)).toBeNull();
});
