// Two ranges beside each other: the measures, and the columns for them. B is the range that is
// broken down, A the one with which it is compared.

import { formatBytes, formatCount, formatDelta } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import type { RangeMeasures, RangeQuery, RangeRow, RangeTable } from '../../data/protocol';
import { measureOf, secondsOf, type Measure } from '../../data/range_measures';

/** The measures to choose from. Those in seconds are the same for ranges of any length. */
export const MEASURES: readonly (readonly [Measure, string])[] = [
  ['bytes', 'at the peak'], ['inclusive', 'inclusive, at the peak'], ['mean_bytes', 'mean over time'], ['end_bytes', 'at the end'],
  ['growth', 'growth'], ['allocations', 'allocations'], ['allocation_rate', 'allocations per second'],
];

export function titleOfMeasure(measure: Measure): string {
  return MEASURES.find(([each]) => each === measure)?.[1] ?? measure;
}

/** Returns the measure that a comparison shows. */
export function measureIn(sort: RangeQuery['sort']): Measure {
  return MEASURES.find(([each]) => each === sort)?.[0] ?? 'bytes';
}

/** What a row, or the total, has in both ranges; null if there is only one. */
export interface Both {
  readonly a: number;
  readonly b: number;
}

export function bothOf(measure: Measure, amounts: RangeMeasures, other: RangeMeasures | null, table: RangeTable): Both {
  const a = other === null || table.other === null ? 0 : measureOf(measure, other, secondsOf(table.other));
  return { a, b: measureOf(measure, amounts, secondsOf(table)) };
}

export function totalOf(measure: Measure, table: RangeTable): Both {
  return bothOf(measure, { ...table.total, inclusive: null }, table.other === null ? null : { ...table.other.total, inclusive: null }, table);
}

export interface ComparedColumn {
  readonly id: RangeQuery['side'];
  readonly title: string;
  readonly text: (row: RangeRow) => string;
}

/** Sums over a range depend on its length, which their titles therefore name. */
export function comparedColumns(measure: Measure, hasFrames: boolean, table: RangeTable): readonly ComparedColumn[] {
  const own = hasFrames && measure !== 'inclusive' ? 'self ' : '';
  const isSum = measure === 'allocations' || measure === 'growth';
  const during = ({ from_ns, to_ns }: { readonly from_ns: number; readonly to_ns: number }): string => (isSum ? ` in ${formatDuration(to_ns - from_ns)}` : '');
  const of = (row: RangeRow): Both => bothOf(measure, row, row.other, table);
  return [
    { id: 'other', title: `A: ${own}${SHORT[measure]}${table.other === null ? '' : during(table.other)}`, text: (row) => formatMeasure(measure, of(row).a) },
    { id: 'this', title: `B: ${own}${SHORT[measure]}${during(table)}`, text: (row) => formatMeasure(measure, of(row).b) },
    { id: 'difference', title: 'More than in A', text: (row) => formatDifference(measure, of(row).b - of(row).a) },
  ];
}

const SHORT: Readonly<Record<Measure, string>> = {
  bytes: 'at peak', inclusive: 'inclusive', byte_seconds: 'bytes × s', mean_bytes: 'mean', allocations: 'allocs', allocation_rate: 'allocs/s', growth: 'growth', end_bytes: 'at end',
};

/** 12.0 MiB; 1,203; 41.5/s; of growth +12.0 MiB. */
export function formatMeasure(measure: Measure, value: number): string {
  if (measure === 'growth') return formatDelta(value);
  if (measure === 'allocations') return formatCount(value);
  return measure === 'allocation_rate' ? `${formatRate(value)}/s` : formatBytes(value);
}

/** +12.0 MiB; -3; ±0. */
export function formatDifference(measure: Measure, difference: number): string {
  if (measure !== 'allocations' && measure !== 'allocation_rate') return formatDelta(Math.round(difference));
  if (difference === 0) return '±0';
  return `${difference > 0 ? '+' : ''}${formatMeasure(measure, difference)}`;
}

/** '12.0 MiB more than in A, +1.3 %', '3 fewer than in A', 'as in A'. */
export function moreWords(measure: Measure, { a, b }: Both): string {
  const isCount = measure === 'allocations' || measure === 'allocation_rate';
  const difference = isCount ? b - a : Math.round(b - a);
  if (difference === 0) return 'as in A';
  const size = formatDifference(measure, Math.abs(difference)).slice(1);
  const share = a > 0 && measure !== 'growth' ? `, ${difference > 0 ? '+' : '-'}${Number(((100 * Math.abs(difference)) / a).toPrecision(2))} %` : '';
  return `${size} ${difference > 0 ? 'more' : isCount ? 'fewer' : 'less'} than in A${share}`;
}

function formatRate(rate: number): string {
  return Math.abs(rate) >= 100 ? formatCount(rate) : String(Number(rate.toPrecision(3)));
}
