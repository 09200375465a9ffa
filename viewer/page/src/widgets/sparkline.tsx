// A row's history as a small area chart, with a sentence for screen readers.

import { formatBytes } from '../base/format_bytes';

const WIDTH = 96;
const HEIGHT = 18;

/** Returns the outline as an SVG path. `top` is the value at the upper edge. Pure, for tests. */
export function sparklinePath(values: readonly number[], top: number, width = WIDTH, height = HEIGHT): string {
  if (values.length === 0 || !(top > 0)) return '';
  const step = width / values.length;
  let path = `M0 ${height}`;
  values.forEach((value, i) => {
    const y = height - (Math.max(0, value) / top) * (height - 1);
    path += `V${round(y)}H${round((i + 1) * step)}`;
  });
  return `${path}V${height}Z`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

interface SparklineProps {
  readonly values: readonly number[]; // at some moments
  readonly peak: number; // the full height; it may lie between two of them
}

export function Sparkline({ values, peak }: SparklineProps) {
  if (values.length === 0) return null;
  const top = values.reduce((most, value) => Math.max(most, value), peak);
  const label = `peak ${formatBytes(top)}, ${formatBytes(values.at(-1) ?? 0)} at the end`;
  return (
    <svg class="sparkline" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <path d={sparklinePath(values, top)} />
    </svg>
  );
}
