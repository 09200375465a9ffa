// The frame of a small chart: bytes to the left, positions below, a title and a description for
// screen readers. What is inside is drawn by its children in the coordinates of ChartScale.

import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { formatByteTicks } from '../base/format_bytes';
import { byteTicks } from '../base/ticks';

export const CHART = { width: 760, height: 240, left: 86, right: 12, top: 10, bottom: 30 } as const;

const NEAR_EDGE = 20;

export interface ChartScale {
  readonly x: (position: number) => number;
  readonly y: (bytes: number) => number;
}

export function chartScale(x: readonly [number, number], y: readonly [number, number]): ChartScale {
  const { width, height, left, right, top, bottom } = CHART;
  const share = (value: number, [low, high]: readonly [number, number]): number => (value - low) / Math.max(high - low, Number.MIN_VALUE);
  return {
    x: (position) => left + share(position, x) * (width - left - right),
    y: (bytes) => height - bottom - share(bytes, y) * (height - top - bottom),
  };
}

export interface Tick {
  readonly at: number; // position
  readonly text: string;
}

interface ChartFrameProps {
  readonly title: string;
  readonly description: string;
  readonly y: readonly [number, number];
  readonly scale: ChartScale;
  readonly ticks: readonly Tick[]; // along x
  readonly axis: string; // what x is
  readonly children: ComponentChildren;
}

export function ChartFrame({ title, description, y, scale, ticks, axis, children }: ChartFrameProps) {
  const id = useId();
  const { width, height, left, right, bottom } = CHART;
  const bytes = byteTicks(y[0], y[1], 5);
  const labels = formatByteTicks(bytes);
  const floor = height - bottom;
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-labelledby={`${id}t ${id}d`}>
      <title id={`${id}t`}>{title}</title>
      <desc id={`${id}d`}>{description}</desc>
      {bytes.map((tick, i) => (
        <g key={tick}>
          <line class="chart-grid" x1={left} x2={width - right} y1={scale.y(tick)} y2={scale.y(tick)} />
          <text x={left - 8} y={scale.y(tick) + 4} text-anchor="end">{labels[i]}</text>
        </g>
      ))}
      {children}
      <line class="chart-axis" x1={left} x2={width - right} y1={floor} y2={floor} />
      {ticks.map(({ at, text }) => (
        // Right-aligned at the right edge, over which centered text would reach.
        <text key={at} x={scale.x(at)} y={floor + 14} text-anchor={scale.x(at) > width - right - NEAR_EDGE ? 'end' : 'middle'}>{text}</text>
      ))}
      <text x={width - right} y={height - 3} text-anchor="end">{axis}</text>
    </svg>
  );
}

/** A line of text with a sample of what it explains, below a chart. */
export function ChartKey({ entries }: { readonly entries: readonly { readonly name: string; readonly style: Record<string, string> }[] }) {
  return (
    <p class="chart-key">
      {entries.map(({ name, style }) => (
        <span key={name} class="swatch-entry">
          <span class="legend-swatch" aria-hidden="true" style={style} /> {name}
        </span>
      ))}
    </p>
  );
}
