// What would have been reserved with another setting, by column: the replays that a standalone file
// contains (viewer/html/predictions.h), by the rules of PredictedCurve (protocol.ts).
// viewer/questions/predicted_curve.cc does the same.

import { DataError } from '../data_source';
import type { PredictedCurve, PredictedQuery } from '../protocol';
import { columnEvents, type AxisContext, type LaneTotals } from './select_curve';

/** By setting. */
export type PredictionTable = Readonly<Record<string, PackedPrediction>>;

export type PackedPrediction =
  | { readonly why: string }
  | {
      readonly events: readonly number[]; // each as the difference to the one before
      readonly bytes: readonly number[];
      readonly peak_bytes: number;
      readonly retries: number;
      readonly failure: number | null;
    };

export interface PredictionContext extends AxisContext {
  readonly totals: LaneTotals;
}

/** Throws a DataError if the table has no replay with these settings. */
export function predictedCurve(query: PredictedQuery, table: PredictionTable, context: PredictionContext): PredictedCurve {
  const packed = Object.hasOwn(table, query.settings) ? table[query.settings]! : { why: missingFrom(table) };
  if ('why' in packed) throw new DataError(packed.why);
  const { first, last, known } = columnEvents(query, context, context.totals);
  const { peak_bytes, retries, failure } = packed;
  const [events, bytes] = [sumsOf(packed.events), sumsOf(packed.bytes)];
  const reserved = new Float64Array(query.columns).fill(NaN);
  let [next, now] = [0, 0];
  for (let c = known.from; c < known.to; c++) {
    for (; next < events.length && events[next]! < first[c]!; next++) now = bytes[next]!;
    if (failure !== null && first[c]! > failure) break;
    // A change at the first event takes the place of what was reserved before it.
    let most = events[next] === first[c] ? bytes[next]! : now;
    for (; next < events.length && events[next]! <= last[c]!; next++) {
      now = bytes[next]!;
      most = Math.max(most, now);
    }
    reserved[c] = most;
  }
  return { query, reserved, peak_bytes, retries, failure };
}

function missingFrom(table: PredictionTable): string {
  return `this file has only ${Object.keys(table).join(', ') || 'what was recorded'}; others are in gpumemtrace view`;
}

function sumsOf(differences: readonly number[]): Float64Array {
  let sum = 0;
  return Float64Array.from(differences, (difference) => (sum += difference));
}
