// Parts of a whole as one bar, with marks on the same scale, and a list of the parts below it that
// says the same in words.

import type { ComponentChildren } from 'preact';
import { formatBytes, formatExactBytes, formatPercent } from '../base/format_bytes';
import { cssColor, type Hue } from '../render/palette';

export interface BarPart {
  readonly name: string;
  readonly bytes: number;
  readonly hue: Hue;
}

export interface BarMark {
  readonly name: string;
  readonly bytes: number;
}

/** Beyond so many times the parts' sum, a mark would leave nothing to see of them. */
const FARTHEST = 4;
const ROOM = 1.04;

export interface BarScale {
  readonly top: number; // bytes at the right edge
  readonly near: readonly BarMark[]; // on the scale
  readonly far: readonly BarMark[]; // beyond its right edge
}

/** Returns the scale on which the parts and all marks that are not too far away can be seen. */
export function scaleOf(parts: readonly BarPart[], marks: readonly BarMark[]): BarScale {
  const sum = parts.reduce((total, part) => total + Math.max(0, part.bytes), 0);
  const near = marks.filter((mark) => mark.bytes <= FARTHEST * sum);
  const top = Math.max(1, sum, ...near.map((mark) => mark.bytes)) * ROOM;
  return { top, near, far: marks.filter((mark) => mark.bytes > FARTHEST * sum) };
}

interface StackedBarProps<P extends BarPart> {
  readonly title: string;
  readonly parts: readonly P[];
  readonly marks: readonly BarMark[];
  /** To compare bars with each other; by default that of the parts and marks. */
  readonly scale?: BarScale;
  /** What follows the name of a part in the list: by default its bytes and its share. */
  readonly wordsOf?: (part: P) => string;
  /** Renders the name of a part in the list, such as a link. */
  readonly nameOf?: (part: P) => ComponentChildren;
}

export function StackedBar<P extends BarPart>({ title, parts, marks, scale, wordsOf, nameOf }: StackedBarProps<P>) {
  const { top, near, far } = scale ?? scaleOf(parts, marks);
  const shown = parts.filter((part) => part.bytes > 0);
  const sum = shown.reduce((total, part) => total + part.bytes, 0);
  const percent = (bytes: number): string => `${(100 * bytes) / top}%`;
  return (
    <figure class="stacked-bar">
      <div class={`stacked-bar-plot ${marks.length === 0 ? 'plain' : ''}`} role="img" aria-label={`${title}: ${[...shown, ...marks].map((each) => `${each.name} ${formatBytes(each.bytes)}`).join(', ')}`}>
        <div class="stacked-bar-parts">
          {shown.map((part) => (
            <span key={part.name} class="stacked-bar-part" title={`${part.name}: ${formatBytes(part.bytes)}`} style={{ width: percent(part.bytes), background: cssColor(part.hue) }} />
          ))}
        </div>
        {near.map((mark, i) => (
          <span key={mark.name} class={`stacked-bar-mark ${mark.bytes > 0.6 * top ? 'left' : ''} row-${i % 2}`} style={{ left: percent(mark.bytes) }}>
            <span>{mark.name} {formatBytes(mark.bytes)}</span>
          </span>
        ))}
        {far.length > 0 && <span class="stacked-bar-far">{far.map((mark) => `${mark.name} ${formatBytes(mark.bytes)}`).join(', ')} →</span>}
      </div>
      <ul class="stacked-bar-list">
        {shown.map((part) => (
          <li key={part.name}>
            <span class="legend-swatch" aria-hidden="true" style={{ background: cssColor(part.hue) }} />
            <span>{nameOf === undefined ? part.name : nameOf(part)}</span>
            <span class="muted" title={formatExactBytes(part.bytes)}>{wordsOf === undefined ? `${formatBytes(part.bytes)}, ${formatPercent(part.bytes, sum)}` : wordsOf(part)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
