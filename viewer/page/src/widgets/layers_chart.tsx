// Layers of bytes over time, stacked, and lines or points over them.

import { formatBytes } from '../base/format_bytes';
import { formatMoment } from '../base/format_time';
import { timeTicks } from '../base/ticks';
import { cssColor, type Hue } from '../render/palette';
import { ChartFrame, ChartKey, chartScale, type ChartScale, type Tick } from './chart_frame';

export interface Layer {
  readonly name: string;
  readonly hue: Hue;
  readonly values: readonly number[]; // bytes, at each moment
}

/** What is drawn over the layers, on the same scale. */
export interface Line {
  readonly name: string;
  readonly values: ArrayLike<number>; // bytes, at each moment; NaN: not known
  readonly isSampled: boolean; // drawn as points, because nothing is known between two of them
}

interface LayersChartProps {
  readonly title: string;
  readonly layers: readonly Layer[]; // from the bottom up, all of the same length
  readonly lines?: readonly Line[];
  /** Where the values are: each at a moment in words, or one for each column of a stretch of time. */
  readonly moments: readonly string[] | Columns;
  readonly axis: string;
}

/** Columns of equal width, from `from` to `to` ns. */
export interface Columns {
  readonly from: number;
  readonly to: number;
  readonly columns: number;
}

const TICKS = 6;
const SAMPLE_OF_LINE = {
  points: { width: '5px', height: '5px', border: '0', borderRadius: '0', background: 'var(--fg)' },
  line: { height: '2px', border: '0', borderRadius: '0', background: 'var(--fg)' },
} as const;

/** Returns the outline of each layer from the bottom up: its lower and its upper edge. */
export function edgesOf(layers: readonly Layer[]): (readonly [lower: readonly number[], upper: readonly number[]])[] {
  let below: readonly number[] = layers[0]?.values.map(() => 0) ?? [];
  return layers.map(({ values }) => {
    const lower = below;
    const upper = values.map((value, i) => lower[i]! + value);
    below = upper;
    return [lower, upper] as const;
  });
}

export function LayersChart({ title, layers, lines = [], moments, axis }: LayersChartProps) {
  const shown = layers.filter((layer) => layer.values.some((value) => value > 0));
  const count = 'columns' in moments ? moments.columns : moments.length;
  if (shown.length === 0 || count < 2) return null;
  const edges = edgesOf(shown);
  const most = Math.max(...edges.at(-1)![1], ...lines.flatMap(({ values }) => knownOf(values).map(([, value]) => value)));
  const y = [0, most * 1.06] as const;
  const scale = chartScale([0, count - 1], y);
  const ticks = 'columns' in moments ? ticksOfTime(moments) : ticksOfWords(moments);
  const path = (values: readonly number[], isBack: boolean): string => {
    const points = values.map((value, i) => `${round(scale.x(i))} ${round(scale.y(value))}`);
    return (isBack ? points.reverse() : points).join('L');
  };
  return (
    <figure class="chart-figure">
      <ChartFrame
        title={title} y={y} scale={scale} ticks={ticks} axis={axis}
        description={shown.map((layer) => `${layer.name}: ${formatBytes(Math.max(...layer.values))} at most, ${formatBytes(layer.values.at(-1)!)} at the end`).join('; ')}
      >
        {edges.map(([lower, upper], i) => (
          <path key={shown[i]!.name} class="chart-layer" style={{ fill: cssColor(shown[i]!.hue) }} d={`M${path(upper, false)}L${path(lower, true)}Z`}>
            <title>{shown[i]!.name}</title>
          </path>
        ))}
        {lines.map(({ name, values, isSampled }) => (
          <path key={name} class={isSampled ? 'chart-points' : 'chart-over'} d={lineOf(values, isSampled, scale)}>
            <title>{name}</title>
          </path>
        ))}
      </ChartFrame>
      <ChartKey
        entries={[
          ...shown.map((layer) => ({ name: `${layer.name}, at most ${formatBytes(Math.max(...layer.values))}`, style: { background: cssColor(layer.hue) } })),
          ...lines.map(({ name, isSampled }) => ({ name, style: SAMPLE_OF_LINE[isSampled ? 'points' : 'line'] })),
        ]}
      />
    </figure>
  );
}

/** Returns round times, at positions in columns. */
export function ticksOfTime({ from, to, columns }: Columns): Tick[] {
  const times = timeTicks(from, to, TICKS);
  const step = (times[1] ?? to) - (times[0] ?? from);
  // The values of a column are drawn at its middle.
  const positionOf = (ns: number): number => Math.min(columns - 1, Math.max(0, ((ns - from) / (to - from)) * columns - 0.5));
  return times.map((ns) => ({ at: positionOf(ns), text: ns === 0 ? '0' : formatMoment(ns, step) }));
}

// The first and the last label would reach over the edge.
function ticksOfWords(moments: readonly string[]): Tick[] {
  const every = Math.max(1, Math.round(moments.length / TICKS));
  return moments.flatMap((text, i) => (i % every === Math.floor(every / 2) ? [{ at: i, text }] : []));
}

function knownOf(values: ArrayLike<number>): (readonly [moment: number, bytes: number])[] {
  return Array.from(values, (value, i) => [i, value] as const).filter(([, value]) => !Number.isNaN(value));
}

/** Returns the path of a line, interrupted by what is not known; of points, a dot for each. */
function lineOf(values: ArrayLike<number>, isSampled: boolean, { x, y }: ChartScale): string {
  return knownOf(values)
    .map(([i, value]) => {
      const begins = isSampled || i === 0 || Number.isNaN(values[i - 1]!);
      return `${begins ? 'M' : 'L'}${round(x(i))} ${round(y(value))}${isSampled ? 'h0' : ''}`;
    })
    .join('');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
