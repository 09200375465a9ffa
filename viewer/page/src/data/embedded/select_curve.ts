// Computes the curves of a window by the rules of CurveTile (protocol.ts), over a standalone file.

import { edgeOf, midpointOf, type Columns } from '../columns';
import type { Counted, CurveSeries, CurveTile, Sampled, SampledSeries, Series, Window } from '../protocol';
import type { Changes, Lane, Samples } from './lane_data';
import type { Positions } from './positions';
import { upperBound } from '../../base/binary_search';
import { type Extremes, TotalCurve } from './total_curve';

export interface AxisContext {
  readonly positions: Positions;
}

/** The events of the columns of a window. */
export interface ColumnEvents {
  readonly middle: Uint32Array; // the last one at or before the midpoint
  readonly first: Uint32Array; // a column has the states after the events first..last
  readonly last: Uint32Array;
  readonly peak: Uint32Array; // the first of these after which most bytes are live
  /** The columns [from, to) have their midpoint in the recording. */
  readonly known: { readonly from: number; readonly to: number };
}

export function columnEvents(window: Columns, { positions }: AxisContext, totals: LaneTotals): ColumnEvents {
  const { columns } = window;
  const [middle, first, last, peak] = [new Uint32Array(columns), new Uint32Array(columns), new Uint32Array(columns), new Uint32Array(columns)];
  const known = { from: 0, to: columns };
  for (let c = 0; c < columns; c++) {
    const position = midpointOf(window, c);
    if (position < positions.of(0)) known.from = c + 1;
    if (position > positions.end) known.to = Math.min(known.to, c);
    middle[c] = positions.eventAt(position);
    first[c] = positions.eventAt(edgeOf(window, c));
    last[c] = Math.max(first[c]!, middle[c]!, positions.eventsBefore(edgeOf(window, c + 1)) - 1);
    peak[c] = totals.peakEvent(first[c]!, last[c]!);
  }
  return { middle, first, last, peak, known };
}

/** Totals of a lane over the blocks in the file and those left out. */
export class LaneTotals {
  /** Totals of the blocks in the file. */
  readonly shown: TotalCurve;
  private readonly codes: number;
  private readonly checkpoints: Float64Array; // by category, before each STRIDE changes
  private readonly changeCode: Uint8Array;
  private readonly changeBytes: Float64Array;
  private readonly omitted: Float64Array; // of all categories, by border
  private readonly reserved: TotalCurve | null;

  constructor(
    private readonly lane: Lane,
    categories: number,
  ) {
    this.codes = categories;
    const changes = changesOf(lane);
    this.shown = new TotalCurve(changes.events, changes.totals);
    this.changeCode = changes.codes;
    this.changeBytes = changes.bytes;
    this.checkpoints = checkpointsOf(changes.codes, changes.bytes, categories);
    const { border, bytes } = lane.omissions;
    this.omitted = new Float64Array(border.length);
    for (let k = 0; k < bytes.length; k++) this.omitted[k % border.length]! += bytes[k]!;
    this.reserved = lane.reserved === null ? null : curveOf(lane.reserved);
  }

  omittedAt(event: number): number {
    return this.omitted[this.borderAt(event)] ?? 0;
  }

  liveAt(event: number): number {
    return this.shown.at(event) + this.omittedAt(event);
  }

  /** Returns the extremes over the states after the events from..to. */
  liveExtremes(from: number, to: number): { min: number; max: number } {
    const { border, min, max } = this.lane.omissions;
    const first = this.borderAt(from);
    const last = this.borderAt(to);
    const out = { min: Infinity, max: -Infinity };
    const note = (low: number, high: number): void => {
      out.min = Math.min(out.min, low);
      out.max = Math.max(out.max, high);
    };
    const part = (k: number, begin: number, end: number): void => {
      const shown = this.shown.extremes(begin, end);
      const omitted = this.omitted[k] ?? 0;
      note(shown.min + omitted, shown.max + omitted);
    };
    const lastOf = (k: number): number => (k + 1 < border.length ? border[k + 1]! - 1 : Infinity);
    if (border.length === 0) {
      part(0, from, to);
      return out;
    }
    for (let k = first; k <= last; k++) {
      const begin = Math.max(from, border[k]!);
      const end = Math.min(to, lastOf(k));
      if (begin === border[k] && end === lastOf(k)) note(min[k]!, max[k]!);
      else part(k, begin, end);
    }
    return out;
  }

  /**
   * Returns the first of the events from..to after which most is live. Blocks that were left out may
   * shift it within their border.
   */
  peakEvent(from: number, to: number): number {
    const { border, max, peak } = this.lane.omissions;
    if (border.length === 0) return this.shown.peakEvent(from, to);
    let [best, most] = [from, -Infinity];
    for (let k = this.borderAt(from); k <= this.borderAt(to); k++) {
      const begin = Math.max(from, border[k]!);
      const end = Math.min(to, k + 1 < border.length ? border[k + 1]! - 1 : Infinity);
      const isWhole = begin === border[k] && (k + 1 === border.length || end === border[k + 1]! - 1);
      const event = isWhole ? peak[k]! : this.shown.peakEvent(begin, end);
      const bytes = isWhole ? max[k]! : this.liveAt(event);
      if (bytes > most) [best, most] = [event, bytes];
    }
    return best;
  }

  /** Writes the bytes of each category after an event to out[code * stride + at]. */
  categoriesAt(event: number, out: Float64Array, stride: number, at: number): void {
    const change = this.shown.indexAt(event);
    const checkpoint = Math.floor(change / STRIDE);
    for (let c = 0; c < this.codes; c++) out[c * stride + at] = this.checkpoints[checkpoint * this.codes + c]!;
    for (let i = checkpoint * STRIDE; i <= change; i++) out[this.changeCode[i]! * stride + at]! += this.changeBytes[i]!;
    const { border, bytes } = this.lane.omissions;
    if (border.length === 0) return;
    const k = this.borderAt(event);
    for (let c = 0; c * border.length < bytes.length && c < this.codes; c++) out[c * stride + at]! += bytes[c * border.length + k]!;
  }

  /** Returns null if the lane has no such series. */
  curveOf(name: Counted): { at(event: number): number; extremes(from: number, to: number): Extremes } | null {
    if (name === 'reserved') return this.reserved;
    return { at: (event) => this.liveAt(event), extremes: (from, to) => this.liveExtremes(from, to) };
  }
  samplesOf(name: Sampled): Samples | undefined {
    return this.lane.samples.get(name);
  }

  private borderAt(event: number): number {
    return Math.max(0, upperBound(this.lane.omissions.border, event) - 1);
  }
}

const STRIDE = 256;

interface BlockChanges {
  readonly events: Uint32Array;
  readonly totals: Float64Array;
  readonly codes: Uint8Array;
  readonly bytes: Float64Array;
}

/**
 * Returns births and deaths in order. The first entry is no change, so that every event has one at
 * or before it.
 */
function changesOf({ blocks, kinds }: Lane): BlockChanges {
  const { count, birth, death, kind } = blocks;
  const deaths = new Uint32Array(count).map((_, i) => i).filter((i) => death[i] !== 0xffffffff);
  deaths.sort((a, b) => death[a]! - death[b]!);
  const total = 1 + count + deaths.length;
  const out = { events: new Uint32Array(total), totals: new Float64Array(total), codes: new Uint8Array(total), bytes: new Float64Array(total) };
  let born = 0;
  let died = 0;
  for (let i = 1; i < total; i++) {
    const isBirth = died >= deaths.length || (born < count && birth[born]! <= death[deaths[died]!]!);
    const block = isBirth ? born++ : deaths[died++]!;
    const k = kind[block]!;
    out.events[i] = isBirth ? birth[block]! : death[block]!;
    out.bytes[i] = isBirth ? kinds.size[k]! : -kinds.size[k]!;
    out.codes[i] = kinds.category[k]!;
    out.totals[i] = out.totals[i - 1]! + out.bytes[i]!;
  }
  return out;
}

function checkpointsOf(codes: Uint8Array, bytes: Float64Array, categories: number): Float64Array {
  const out = new Float64Array((Math.floor(codes.length / STRIDE) + 1) * categories);
  const now = new Float64Array(categories);
  for (let i = 0; i < codes.length; i++) {
    if (i % STRIDE === 0) out.set(now, (i / STRIDE) * categories);
    now[codes[i]!]! += bytes[i]!;
  }
  return out;
}

/** It is unknown before its first value. */
function curveOf({ event, value }: Changes): TotalCurve {
  if (event.length > 0 && event[0] === 0) return new TotalCurve(event, value);
  return new TotalCurve([0, ...event], Float64Array.from([NaN, ...value]));
}

export interface CurveContext extends AxisContext {
  readonly totals: LaneTotals;
  readonly series: readonly Series[];
  readonly clock: Float64Array;
  readonly categories: number;
}

export function selectCurve(window: Window, context: CurveContext): CurveTile {
  const { totals, series, clock, categories } = context;
  const { columns } = window;
  const { middle, first, last, peak, known } = columnEvents(window, context, totals);
  const ns = Float64Array.from(middle, (event, c) => (window.axis === 'time' ? midpointOf(window, c) : clock[event]!));
  const byCategory = new Float64Array(categories * columns);
  const out = new Map<Counted, CurveSeries>();
  const samples = new Map<Sampled, SampledSeries>();
  for (const name of series) {
    if (name === 'live' || name === 'reserved') out.set(name, emptySeries(columns));
    else samples.set(name, sampledSeries(window, totals.samplesOf(name), last, known));
  }
  for (let c = known.from; c < known.to; c++) {
    totals.categoriesAt(peak[c]!, byCategory, columns, c);
    for (const [name, values] of out) {
      const curve = totals.curveOf(name);
      const extremes = curve?.extremes(first[c]!, last[c]!);
      values.mid[c] = curve?.at(middle[c]!) ?? NaN;
      values.min[c] = extremes === undefined || extremes.min === Infinity ? NaN : extremes.min;
      values.max[c] = extremes === undefined || extremes.max === -Infinity ? NaN : extremes.max;
    }
  }
  return { window, event: middle, peak, ns, series: out, samples, categories: byCategory };
}

function sampledSeries(window: Window, samples: Samples | undefined, last: Uint32Array, known: ColumnEvents['known']): SampledSeries {
  const { columns, axis } = window;
  const [value, ns] = [new Float64Array(columns).fill(NaN), new Float64Array(columns).fill(NaN)];
  if (samples === undefined) return { value, ns };
  let next = 0;
  for (let c = known.from; c < known.to; c++) {
    const isPast = (i: number): boolean => (axis === 'time' ? samples.ns[i]! < edgeOf(window, c + 1) : samples.event[i]! <= last[c]!);
    while (next < samples.event.length && isPast(next)) next++;
    if (next === 0) continue;
    value[c] = samples.value[next - 1]!;
    ns[c] = samples.ns[next - 1]!;
  }
  return { value, ns };
}

function emptySeries(columns: number): CurveSeries {
  const unknown = (): Float64Array => new Float64Array(columns).fill(NaN);
  return { min: unknown(), max: unknown(), mid: unknown() };
}
