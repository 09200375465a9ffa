import { expect, it } from 'vitest';
import { INITIAL_STATE, type State } from '../../state/state';
import { recordedSource } from '../../testing/recordings';
import { fromShown, otherMoment, otherWords } from './other_moment';

async function twoFiles(change: Partial<State>): Promise<State> {
  const meta = await recordedSource().meta();
  const [one] = meta.files;
  const lanes = one!.lanes.map((lane) => ({ ...lane, peak_event: lane.peak_event + 1000 }));
  return { ...INITIAL_STATE, meta: { ...meta, files: [one!, { ...one!, file: 1, lanes }] }, ...change };
}

it('is the peak of the other file, not the moment of this one', async () => {
  const state = await twoFiles({ file: 0, lane: 0 });
  const [one, two] = state.meta!.files;
  expect(otherMoment(state)).toEqual({ file: 1, lane: two!.lanes[0]!.lane, to: one!.lanes[0]!.peak_event + 1000 });
  expect(otherWords(state, otherMoment(state))).toContain('at its own peak, event');
  expect(otherMoment({ ...state, cursor: 3 })?.to).toBe(one!.lanes[0]!.peak_event + 1000);
});

it('is in the lane most similar to this one', async () => {
  const state = await twoFiles({ file: 0, lane: 0 });
  const [one, two] = state.meta!.files;
  const swapped = [...two!.lanes].reverse().map((lane, i) => ({ ...lane, lane: i }));
  const other = otherMoment({ ...state, meta: { ...state.meta!, files: [one!, { ...two!, lanes: swapped }] } });
  expect(swapped[other!.lane]!.heap).toBe(one!.lanes[0]!.heap);
});

it('is null without another file, or if that has no such memory', async () => {
  const state = await twoFiles({ file: 0, lane: 0 });
  const [one, two] = state.meta!.files;
  expect(otherMoment({ ...state, meta: { ...state.meta!, files: [one!] } })).toBeNull();
  expect(otherWords(state, null)).toContain('No other file');
  expect(otherMoment({ ...state, meta: { ...state.meta!, files: [one!, { ...two!, lanes: [] }] } })).toBeNull();
});

it('is the moment of the comparison if the cursor is too', async () => {
  const state = await twoFiles({ file: 0, lane: 0, otherCursor: 50 });
  expect(otherMoment({ ...state, cursor: 40 })?.to).toBe(50);
  expect(otherWords({ ...state, cursor: 40 }, otherMoment({ ...state, cursor: 40 }))).toContain('after its event 50, minus');
  expect(otherMoment({ ...state, cursor: 40, otherCursor: 1e9 })?.to).toBe(state.meta!.files[1]!.events);
  expect(otherWords(state, otherMoment(state))).toContain('at its own peak');
});

it('is in another file even if a link made the compared file the one shown', async () => {
  const state = await twoFiles({ file: 1, other: 1, lane: 0 });
  expect(otherMoment(state)?.file).toBe(0);
});

it('makes the difference from the file shown to the other one, as the comparison does', () => {
  const empty = { parent: Uint32Array.of(0), blocks: Float64Array.of(1), name: Uint32Array.of(0), names: ['all'], category: new Uint8Array(0), category_bytes: new Float64Array(0) };
  const tree = { ...empty, bytes: Float64Array.of(100), before: Float64Array.of(300), total: 100 };
  const difference = fromShown(tree);
  expect([difference.bytes[0], difference.before[0], difference.total]).toEqual([300, 100, 300]);
  const alone = { ...tree, before: new Float64Array(0) };
  expect(fromShown(alone)).toBe(alone);
});
