// The live memory of two recordings, overlaid on their common axis.

import { useState } from 'preact/hooks';
import { formatBytes, formatDelta } from '../../base/format_bytes';
import { byteTicks } from '../../base/ticks';
import { cssColor, SHADES } from '../../render/palette';
import type { Theme } from '../../render/theme';
import { useCanvas, type CanvasSize } from '../../widgets/use_canvas';
import type { AlignedCurve, Alignment } from './alignment';
import { labelsAlong } from './axis_labels';

const LEFT = 72; // px, for the labels of the bytes
const BOTTOM = 18;
const HUES = ['blue', 'vermilion'] as const;

export interface CompareChartProps {
  readonly curves: readonly [AlignedCurve, AlignedCurve];
  readonly names: readonly [string, string];
  readonly alignment: Alignment;
  readonly note: string; // beside the names; '' for none
  /** Describes a position. */
  readonly wordsOf: (position: number) => string;
}

export function CompareChart(props: CompareChartProps) {
  const { curves, names, note, alignment } = props;
  const [at, setAt] = useState(-1); // column
  const columns = curves[0].max.length;
  const peaks = curves.map(peakOf);
  const { canvas, size } = useCanvas(
    (context, size, theme) => drawChart(context, size, theme, props, at),
    [curves, alignment, at],
  );
  const label = `Live memory of both: ${names[0]} peaks at ${formatBytes(peaks[0]!)}, ${names[1]} at ${formatBytes(peaks[1]!)}`;
  return (
    <div class="compare-chart">
      <p class="bar">
        {names.map((name, side) => (
          <span key={side} class="swatch-name">
            <span class={side === 0 ? 'swatch line' : 'swatch dashes'} style={{ color: cssColor(HUES[side]!) }} aria-hidden="true" /> {name}
          </span>
        ))}
        {note !== '' && <span class="muted">{note}</span>}
        <output aria-live="polite">{readout(props, at)}</output>
      </p>
      <canvas
        ref={canvas}
        role="img"
        tabIndex={0}
        aria-label={label}
        onMouseMove={(event) => setAt(Math.floor(((event.offsetX - LEFT) / Math.max(1, size.width - LEFT)) * columns))}
        onMouseLeave={() => setAt(-1)}
        onKeyDown={(event) => {
          const by = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0;
          if (by === 0) return;
          event.preventDefault();
          const step = Math.max(1, Math.round(columns / 100));
          setAt((old) => Math.min(columns - 1, Math.max(0, old < 0 ? 0 : old + by * step)));
        }}
      />
    </div>
  );
}

function readout({ curves, alignment, wordsOf }: CompareChartProps, at: number): string {
  const columns = curves[0].max.length;
  if (at < 0 || at >= columns) return '';
  const where = wordsOf(alignment.from + ((at + 0.5) / columns) * (alignment.to - alignment.from));
  const [one, two] = curves.map((curve) => curve.mid[at]!);
  const change = Number.isNaN(one! + two!) ? '' : ` (${formatDelta(two! - one!)})`;
  return `${where}: ${Number.isNaN(one) ? 'ended' : formatBytes(one!)} and ${Number.isNaN(two) ? 'ended' : formatBytes(two!)}${change}`;
}

function peakOf(curve: AlignedCurve): number {
  return curve.max.reduce((most, value) => (value > most ? value : most), 0);
}

/** `at`: the column under the pointer, -1 if there is none. */
function drawChart(context: CanvasRenderingContext2D, { width, height }: CanvasSize, theme: Theme, { curves, alignment, wordsOf }: CompareChartProps, at: number): void {
  const columns = curves[0].max.length;
  const top = Math.max(1, ...curves.map(peakOf)) * 1.05;
  const x = (c: number): number => LEFT + (c / columns) * (width - LEFT);
  const y = (value: number): number => (height - BOTTOM) * (1 - value / top);
  context.font = theme.font;
  context.textBaseline = 'middle';
  for (const tick of byteTicks(0, top, 5)) {
    context.fillStyle = theme.line;
    context.fillRect(LEFT, Math.round(y(tick)), width - LEFT, 1);
    context.fillStyle = theme.muted;
    context.fillText(formatBytes(tick), 4, Math.max(6, y(tick)));
  }
  context.fillStyle = theme.muted;
  for (const { text, left } of labelsAlong(alignment, wordsOf, LEFT, width, (words) => context.measureText(words).width)) {
    context.fillText(text, left, height - BOTTOM / 2);
  }
  curves.forEach((curve, side) => drawCurve(context, curve, SHADES[theme.scheme][HUES[side]!], side === 1, x, y));
  if (at < 0) return;
  context.fillStyle = theme.fg;
  context.fillRect(x(at + 0.5), 0, 1, height - BOTTOM);
}

function drawCurve(
  context: CanvasRenderingContext2D,
  curve: AlignedCurve,
  color: string,
  dashed: boolean,
  x: (c: number) => number,
  y: (value: number) => number,
): void {
  context.fillStyle = color;
  context.globalAlpha = 0.25;
  for (let c = 0; c < curve.min.length; c++) {
    const low = y(curve.min[c]!);
    const high = y(curve.max[c]!);
    if (low - high >= 1) context.fillRect(x(c), high, x(c + 1) - x(c), low - high);
  }
  context.globalAlpha = 1;
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  context.setLineDash(dashed ? [5, 3] : []);
  context.beginPath();
  for (let c = 0; c < curve.mid.length; c++) {
    const value = curve.mid[c]!;
    if (Number.isNaN(value)) continue;
    if (c === 0 || Number.isNaN(curve.mid[c - 1]!)) context.moveTo(x(c), y(value));
    context.lineTo(x(c + 1), y(value));
  }
  context.stroke();
  context.setLineDash([]);
}
