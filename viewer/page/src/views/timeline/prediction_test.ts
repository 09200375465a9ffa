import { expect, it } from 'vitest';
import type { FileMeta, PredictedCurve, PredictedQuery } from '../../data/protocol';
import { recordedFile, recordedSource } from '../../testing/recordings';
import { lackOfPrediction, predictedAt, Prediction, predictionOptions, predictionWords } from './prediction';

const MIB = 2 ** 20;
const EXPANDABLE = 'expandable_segments:True';
const STACKED = { layout: 'stacked', whatif: EXPANDABLE } as const;
const source = recordedSource();
const file = await recordedFile();
const lane = { ...file.lanes[0]!, peak_reserved_bytes: 80 * MIB };

const curveOf = (query: PredictedQuery): PredictedCurve =>
  ({ query, reserved: Float64Array.of(40 * MIB, 60 * MIB), peak_bytes: 60 * MIB, retries: 0, failure: null });

async function picture(stage = 'ready') {
  const curve = await source.curve({ file: 0, lane: 0, axis: 'event', from: 0, to: 2, columns: 2 });
  return { subject: { file: 0, lane: 0, axis: 'event', layout: 'stacked', stage, window: 0 }, curve } as const;
}

it('is offered where a replay can be asked for, otherwise with the reason', () => {
  expect(lackOfPrediction(STACKED, file, lane)).toBe('');
  expect(lackOfPrediction({ ...STACKED, layout: 'address' }, file, lane)).toBe('only if stacked');
  expect(lackOfPrediction(STACKED, { ...file, live: {} } as FileMeta, lane)).toBe('not while it runs');
  expect(lackOfPrediction(STACKED, file, { ...lane, heap: 'driver' })).toBe("only for PyTorch's blocks");
});

it('offers also settings that only the address names', () => {
  const values = predictionOptions({ ...STACKED, whatif: 'max_split_size_mb:64' }, '').map(([value]) => value);
  expect([values[0], values.at(-1), values.filter((value) => value === EXPANDABLE)]).toEqual(['', 'max_split_size_mb:64', [EXPANDABLE]]);
  expect(predictionOptions(STACKED, 'not now').map(([value, , lack]) => [value !== '', lack])).toContainEqual([true, 'not now']);
});

it('is asked once for each picture, when blocks are known', async () => {
  let change = (): void => undefined;
  const changed = new Promise<void>((resolve) => (change = resolve));
  const asked: string[] = [];
  const prediction = new Prediction({ predicted: (query) => (asked.push(query.settings), Promise.resolve(curveOf(query))) }, change);
  expect(prediction.look(await picture('coarse'), STACKED, file, lane)).toBeNull();
  const shown = await picture();
  expect(prediction.look(shown, { ...STACKED, whatif: '' }, file, lane)).toBeNull();
  expect(prediction.look(shown, STACKED, file, lane)).toBeNull();
  await changed;
  expect(prediction.look(shown, STACKED, file, lane)!.peak_bytes).toBe(60 * MIB);
  expect(asked).toEqual([EXPANDABLE]);
});

it('says why there is none', async () => {
  let change = (): void => undefined;
  const changed = new Promise<void>((resolve) => (change = resolve));
  const prediction = new Prediction({ predicted: () => Promise.reject(new Error('nothing to replay')) }, change);
  const shown = await picture();
  prediction.look(shown, STACKED, file, lane);
  await changed;
  expect([prediction.look(shown, STACKED, file, lane), prediction.failure]).toEqual([null, 'nothing to replay']);
});

it('says what would be reserved, and if it would not suffice', () => {
  const query: PredictedQuery = { file: 0, lane: 0, axis: 'event', from: 0, to: 2, columns: 2, settings: EXPANDABLE };
  const curve = curveOf(query);
  expect(predictionWords(curve, lane)).toBe('would reserve 60.0 MiB at the peak instead of 80.0 MiB');
  expect(predictionWords({ ...curve, peak_bytes: 80 * MIB, retries: 1 }, lane)).toBe('would reserve 80.0 MiB at the peak, as recorded, 1 retry');
  expect(predictionWords({ ...curve, failure: 1234 }, lane)).toBe('would run out of memory at event 1,234, with 60.0 MiB reserved');
  expect(predictedAt(curve, 1.5)).toEqual([`${EXPANDABLE} would reserve 60.0 MiB`]);
  expect([predictedAt(null, 1.5), predictedAt({ ...curve, reserved: Float64Array.of(NaN, NaN) }, 0)]).toEqual([[], []]);
});
