// Bytes over steps with the line that fits them, and where it leads: the forecast, with its
// interval.

import { formatBytes, formatCount } from '../base/format_bytes';
import { decimalTicks } from '../base/ticks';
import { cssColor } from '../render/palette';
import { CHART, ChartFrame, ChartKey, chartScale } from './chart_frame';

export interface Trend {
  readonly title: string;
  readonly values: readonly number[]; // bytes
  readonly stepsPerValue: number;
  readonly fitFrom: number; // the first step that the fit considers, from 1
  readonly perStep: number; // bytes
  readonly low: number; // the bounds of perStep
  readonly high: number;
  /** Steps from the end until the device is full; null: never, or unknown. */
  readonly stepsToFull: number | null;
  readonly capacity: number | null;
}

/** How far a forecast is drawn, as a share of the steps that were seen. */
const FORECAST = 0.4;

export interface FittedTrend {
  readonly points: readonly (readonly [step: number, bytes: number])[];
  readonly last: number; // the last step
  readonly until: number; // the end of the forecast
  readonly from: readonly [step: number, bytes: number]; // of the fitted line
  readonly fit: (step: number, perStep?: number) => number;
}

/** Fits a line of the given slope: through the median of what the points are above it. */
export function fittedTrend({ values, stepsPerValue, fitFrom, perStep, low, stepsToFull }: Trend): FittedTrend {
  const points = values.map((bytes, i) => [(i + 1) * stepsPerValue, bytes] as const);
  const last = points.at(-1)?.[0] ?? 0;
  const fitted = points.filter(([step]) => step >= fitFrom);
  const offsets = fitted.map(([step, bytes]) => bytes - perStep * step).sort((a, b) => a - b);
  const offset = offsets[Math.floor(offsets.length / 2)] ?? 0;
  const atEnd = offset + perStep * last;
  const from = fitted[0]?.[0] ?? last;
  // A forecast of what does not grow says nothing.
  const ahead = low > 0 ? Math.max(1, Math.round(Math.min(stepsToFull ?? Infinity, FORECAST * last))) : 0;
  return {
    points,
    last,
    until: last + ahead,
    from: [from, offset + perStep * from],
    fit: (step, slope = perStep) => atEnd + slope * (step - last),
  };
}

export function TrendChart({ trend }: { readonly trend: Trend }) {
  const fitted = fittedTrend(trend);
  const { points, last, until, from, fit } = fitted;
  if (points.length < 2) return null;
  const isGrowing = until > last;
  const most = Math.max(...points.map(([, bytes]) => bytes), fit(until, trend.high));
  // Minima never reach the capacity: a step needs more than its minimum. It is shown if it is near.
  const capacity = trend.capacity !== null && trend.capacity <= 1.6 * most ? trend.capacity : null;
  // Before the fit begins, memory is set up; those points may lie below the chart.
  const least = Math.min(...points.filter(([step]) => step >= from[0]).map(([, bytes]) => bytes), from[1]);
  // A small rise on a large floor is invisible from zero on.
  const bottom = least > 0.7 * most ? Math.max(0, least - (most - least || most) * 0.6) : 0;
  const y = [bottom, Math.max(most, capacity ?? 0) + (most - bottom) * 0.06] as const;
  const scale = chartScale([0, until], y);
  const at = (step: number, bytes: number): string => `${round(scale.x(step))} ${round(scale.y(bytes))}`;
  const ticks = decimalTicks(0, until, 6, 1).map((step) => ({ at: step, text: formatCount(step) }));
  const [low, high] = [formatBytes(trend.low), formatBytes(trend.high)];
  const rate = `${formatBytes(trend.perStep)} per step${low === high ? '' : ` (${low} to ${high})`}`;
  const first = points.findIndex(([, bytes]) => bytes >= bottom);
  const isFullInside = trend.stepsToFull !== null && isGrowing && trend.stepsToFull <= until - last;
  const line = cssColor('vermilion');
  return (
    <figure class="chart-figure">
      <ChartFrame
        title={trend.title} y={y} scale={scale} ticks={ticks} axis="step"
        description={`${formatBytes(points[0]![1])} at step ${formatCount(points[0]![0])}, ${formatBytes(points.at(-1)![1])} at step ${formatCount(last)}${isGrowing ? `; ${rate}` : '; it does not grow'}.`}
      >
        {isGrowing && <path class="chart-interval" style={{ fill: line }} d={`M${at(last, fit(last))}L${at(until, fit(until, trend.high))}L${at(until, fit(until, trend.low))}Z`} />}
        {capacity !== null && <line class="chart-limit" x1={CHART.left} x2={CHART.width - CHART.right} y1={scale.y(capacity)} y2={scale.y(capacity)} />}
        {capacity !== null && <text x={CHART.left + 6} y={scale.y(capacity) - 4}>{`capacity ${formatBytes(capacity)}`}</text>}
        <path class="chart-line" style={{ stroke: cssColor('blue') }} d={`M${points.slice(first).map(([step, bytes]) => at(step, bytes)).join('L')}`} />
        {isGrowing && <path class="chart-fit" style={{ stroke: line }} d={`M${at(from[0], from[1])}L${at(last, fit(last))}`} />}
        {isGrowing && <path class="chart-forecast" style={{ stroke: line }} d={`M${at(last, fit(last))}L${at(until, fit(until))}`} />}
        {isGrowing && <line class="chart-now" x1={scale.x(last)} x2={scale.x(last)} y1={CHART.top} y2={CHART.height - CHART.bottom} />}
        {isFullInside && <line class="chart-limit" x1={scale.x(until)} x2={scale.x(until)} y1={CHART.top} y2={CHART.height - CHART.bottom} />}
        {isFullInside && <text x={scale.x(until) - 4} y={CHART.height - CHART.bottom - 6} text-anchor="end">the device is full</text>}
      </ChartFrame>
      <ChartKey
        entries={[
          { name: `minimum of each step${bottom > 0 ? ' (the axis does not begin at 0)' : ''}`, style: { background: cssColor('blue') } },
          ...(isGrowing ? [{ name: `fit: ${rate}`, style: { background: line } }, { name: 'forecast with its interval', style: { background: `color-mix(in srgb, ${line} 30%, transparent)` } }] : []),
        ]}
      />
    </figure>
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
