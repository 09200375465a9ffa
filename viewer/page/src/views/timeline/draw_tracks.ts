// Draws the tracks above the plot: instants, steps, phases, ranges.

import { lowerBound, upperBound } from '../../base/binary_search';
import type { Axis, FileMeta, InstantMeta, SpanMeta } from '../../data/protocol';
import { inkOn, mix, SHADES } from '../../render/palette';
import { isInside, positionAt, xOf, type Box, type Renderer, type Viewport } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import { positionOnAxis } from '../../state/navigator';
import type { Note } from '../../state/notes';
import type { Areas } from './areas';
import { nameOfStep, shownSteps } from './shown_steps';

export interface Instant extends InstantMeta {
  readonly kind: 'oom' | 'retry' | 'mark' | 'snapshot' | 'loss' | 'note';
  readonly position: number;
}

const MOST_OF_NOTE = 160; // px; the tooltip has all of it
const MARK_GAP = 24; // px; marks draw lines through the plot only if they are at least this far apart on average
const KIND_WORDS: Readonly<Record<Instant['kind'], string>> = { oom: 'OOM', retry: 'retry', mark: 'mark', snapshot: 'snapshot', loss: 'events lost', note: 'note' };

export function instantsOf(file: FileMeta, axis: Axis, notes: readonly Note[] = []): Instant[] {
  const placed = (kind: Instant['kind'], instants: readonly InstantMeta[]): Instant[] =>
    instants.map((instant) => ({ ...instant, kind, position: positionOnAxis(file, axis, instant.event, instant.ns) }));
  return [
    ...placed('snapshot', file.snapshots), ...placed('mark', file.marks), ...placed('loss', file.losses),
    ...placed('retry', file.retries), ...placed('note', notes.map(({ event, ns, text }) => ({ event, ns, name: text }))), ...placed('oom', file.ooms),
  ];
}

export function wordsOf(instant: Instant): string {
  return instant.kind === 'oom' || instant.kind === 'loss' ? instant.name || KIND_WORDS[instant.kind] : `${KIND_WORDS[instant.kind]} ${instant.name}`;
}

/**
 * Returns the nearest instant in the row of instants, or null if there is none within a few pixels.
 */
export function instantAt(instants: readonly Instant[], view: Viewport, x: number): Instant | null {
  let nearest: Instant | null = null;
  let distance = 7;
  for (const instant of instants) {
    const d = Math.abs(xOf(view, instant.position) - x);
    if (d > distance) continue;
    distance = d;
    nearest = instant;
  }
  return nearest;
}

/** Returns the step, phase or range at a place above the plot, or null if there is none. */
export function spanAt(file: FileMeta, axis: Axis, areas: Areas, view: Viewport, x: number, y: number): SpanMeta | null {
  if (areas.steps !== null && isInside(areas.steps, x, y)) return stepAt(file, axis, view, x);
  if (areas.phases !== null && isInside(areas.phases, x, y)) return nearestSpan(file.phases, file, axis, view, x);
  const depth = areas.ranges.findIndex((box) => isInside(box, x, y));
  return depth < 0 ? null : nearestSpan(file.ranges.filter((range) => range.depth === depth), file, axis, view, x);
}

// Spans are as wide as they are drawn: at least a pixel.
function nearestSpan(spans: readonly SpanMeta[], file: FileMeta, axis: Axis, view: Viewport, x: number): SpanMeta | null {
  return spans.find((span) => {
    const x0 = xOf(view, positionOnAxis(file, axis, span.begin, span.begin_ns));
    return x >= x0 && x < Math.max(x0 + 1, xOf(view, positionOnAxis(file, axis, span.end, span.end_ns)));
  }) ?? null;
}

function stepAt(file: FileMeta, axis: Axis, view: Viewport, x: number): SpanMeta | null {
  const steps = shownSteps(file);
  const position = positionAt(view, x);
  const i = axis === 'step' ? Math.floor(position) - 1 : upperBound(axis === 'time' ? steps.begin_ns : steps.begin, position) - 1;
  if (i < 0 || i >= steps.begin.length) return null;
  const [begin, end, beginNs, endNs] = [steps.begin[i]!, steps.end[i]!, steps.begin_ns[i]!, steps.end_ns[i]!];
  if (axis !== 'step' && position >= (axis === 'time' ? endNs : end)) return null;
  return { name: nameOfStep(steps, i), kind: 'step', begin, end, begin_ns: beginNs, end_ns: endNs, depth: 0, thread: 0 };
}

export function drawTracks(renderer: Renderer, file: FileMeta, axis: Axis, areas: Areas, view: Viewport, theme: Theme): void {
  if (areas.steps !== null) {
    renderer.text('steps', areas.steps.left - 8, areas.steps.top + 8, theme.muted, 'right');
    renderer.clip(areas.steps);
    drawSteps(renderer, file, axis, areas.steps, view, theme);
    renderer.unclip();
  }
  if (areas.phases !== null) {
    renderer.text('phases', areas.phases.left - 8, areas.phases.top + 8, theme.muted, 'right');
    drawSpans(renderer, file, axis, file.phases, areas.phases, view, theme);
  }
  for (const [depth, box] of areas.ranges.entries()) {
    if (depth === 0) renderer.text('ranges', box.left - 8, box.top + 8, theme.muted, 'right');
    drawSpans(renderer, file, axis, file.ranges.filter((range) => range.depth === depth), box, view, theme);
  }
}

export function drawInstants(renderer: Renderer, instants: readonly Instant[], areas: Areas, view: Viewport, theme: Theme): void {
  const { instants: row, plot } = areas;
  renderer.text('events', row.left - 8, row.top + 8, theme.muted, 'right');
  const height = plot.top + plot.height - row.top;
  renderer.clip({ ...row, left: row.left - 6, width: row.width + 12, height });
  drawInstantSigns(renderer, instants, { ...row, height }, view, theme);
  renderer.unclip();
}

/** Draws instants at the top of a box, and lines through it for the most important ones. */
export function drawInstantSigns(renderer: Renderer, instants: readonly Instant[], row: Box, view: Viewport, theme: Theme): void {
  let free = -Infinity;
  const isSeen = (x: number): boolean => x >= row.left - 6 && x <= row.left + row.width + 6;
  const marks = instants.filter((instant) => instant.kind === 'mark' && isSeen(xOf(view, instant.position))).length;
  const hasLines = marks * MARK_GAP <= row.width; // otherwise they hide the picture
  for (const instant of instants) {
    const x = xOf(view, instant.position);
    if (!isSeen(x)) continue;
    const color = colorOf(instant.kind, theme);
    if (instant.kind === 'oom' || (instant.kind === 'mark' && hasLines)) renderer.line(x, row.top + 12, x, row.top + row.height, color, instant.kind === 'oom' ? [] : [3, 4]);
    if (instant.kind === 'loss') renderer.hatch({ left: x - 3, top: row.top + 2, width: 6, height: 12 }, color);
    else if (instant.kind === 'snapshot') renderer.outline({ left: x - 4, top: row.top + 4, width: 8, height: 8 }, color, 1.5);
    else renderer.triangle(x, row.top + 8, 5, color);
    // Labels are drawn only if they do not overlap the previous one.
    if ((instant.kind === 'oom' || instant.kind === 'note') && x > free) {
      const isNote = instant.kind === 'note';
      const width = isNote ? MOST_OF_NOTE : 36;
      const isLeft = x > row.left + row.width - width;
      renderer.text(isNote ? instant.name : 'OOM', x + (isLeft ? -8 : 8), row.top + 8, color, isLeft ? 'right' : 'left', isNote ? width - 12 : undefined);
      free = x + width;
    }
  }
}

function colorOf(kind: Instant['kind'], theme: Theme): string {
  return kind === 'oom' ? theme.warn : kind === 'retry' ? SHADES[theme.scheme].pink : kind === 'loss' || kind === 'note' ? theme.fg : theme.accent;
}

// Steps alternate in shade; one that is not complete is hatched. If they are narrow, only every tenth or hundredth is numbered.
function drawSteps(renderer: Renderer, file: FileMeta, axis: Axis, box: Box, view: Viewport, theme: Theme): void {
  const { begin, end, begin_ns: beginNs, end_ns: endNs, complete, ending } = shownSteps(file);
  const starts = axis === 'time' ? beginNs : axis === 'event' ? begin : null;
  const first = starts === null ? Math.max(0, Math.floor(view.from) - 1) : Math.max(0, upperBound(starts, view.from) - 1);
  const last = starts === null ? Math.min(begin.length, Math.ceil(view.to)) : lowerBound(starts, view.to);
  if (last <= first) return;
  const every = 10 ** Math.max(0, Math.ceil(Math.log10((34 * (last - first)) / box.width)));
  const isNarrow = (last - first) / box.width > 0.5;
  const edges = (i: number): readonly [number, number] => [
    xOf(view, axis === 'step' ? i + 1 : positionOnAxis(file, axis, begin[i]!, beginNs[i]!)),
    xOf(view, axis === 'step' && i < file.steps.end.length ? i + 2 : positionOnAxis(file, axis, end[i]!, endNs[i]!)),
  ];
  for (let i = first; i < last && !isNarrow; ++i) {
    const [x0, x1] = edges(i);
    const place = { left: x0, top: box.top + 1, width: x1 - x0, height: box.height - 2 };
    if (i < complete) renderer.rect(place, i % 2 === 0 ? theme.line : theme.panel);
    else renderer.hatch(place, theme.line);
  }
  // After all steps, so that none covers a part of a number. A number that does not fit is left out.
  let free = box.left;
  for (let i = first + every - 1 - (first % every); i < last; i += every) {
    const [x0, x1] = edges(i);
    const left = Math.max(x0, box.left) + 4;
    const right = left + String(i + 1).length * DIGIT;
    if (left < free || right > Math.min(every === 1 ? x1 : Infinity, box.left + box.width)) continue;
    const words = i < complete ? String(i + 1) : `${i + 1}, ${ending}`;
    renderer.text(left + words.length * DIGIT < Math.min(x1, box.left + box.width) ? words : String(i + 1), left, box.top + 8, theme.fg, 'left');
    free = right + 4;
  }
}

const DIGIT = 7; // px

// Phases have shades of their own: hues are for categories.
const PHASE_SHADE: Readonly<Record<string, number>> = { forward: 0.8, backward: 0.5, optimizer: 0.65 };

function drawSpans(renderer: Renderer, file: FileMeta, axis: Axis, spans: readonly SpanMeta[], box: Box, view: Viewport, theme: Theme): void {
  renderer.clip(box);
  let drawnTo = -Infinity;
  for (const span of spans) {
    const x0 = Math.max(box.left, xOf(view, positionOnAxis(file, axis, span.begin, span.begin_ns)));
    const x1 = Math.min(box.left + box.width, xOf(view, positionOnAxis(file, axis, span.end, span.end_ns)));
    // A span within a pixel that is already drawn would not be visible.
    if (x1 < box.left || x0 > box.left + box.width || x1 < drawnTo + 1) continue;
    drawnTo = x1;
    const color = mix(theme.fg, theme.bg, PHASE_SHADE[span.kind] ?? 0.9);
    renderer.rect({ left: x0, top: box.top + 1, width: Math.max(1, x1 - x0 - 1), height: box.height - 2 }, color);
    if (x1 - x0 > 24) renderer.text(span.name, x0 + 4, box.top + 8, inkOn(color), 'left', x1 - x0 - 6);
  }
  renderer.unclip();
}
