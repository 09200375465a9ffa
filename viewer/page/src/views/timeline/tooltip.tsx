// Describes what is under the pointer.

import { formatBytes, formatCount, formatDelta, formatExactBytes } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import { words } from '../../base/words';
import { columnAt, isSampledIn } from '../../data/columns';
import { labelOf } from '../../data/stack_cache';
import { NO_ROW, type Axis, type FileMeta, type PassingCurve, type PredictedCurve, type SpanMeta, type StackInfo } from '../../data/protocol';
import type { Viewport } from '../../render/renderer';
import { positionAt } from '../../render/renderer';
import type { Dragged } from './draw_overlay';
import { axisWords } from './draw_plot';
import { wordsOf } from './draw_tracks';
import { bytesAt } from './filter_curve';
import type { LargestBlock } from './largest_block';
import { predictedAt } from './prediction';
import type { Picture } from './tiles';
import type { Hover } from './timeline_canvas';

interface TooltipProps {
  readonly hover: Hover;
  readonly dragged: Dragged;
  readonly picture: Picture | null;
  readonly passing: PassingCurve | null;
  readonly predicted: PredictedCurve | null;
  readonly file: FileMeta;
  readonly view: Viewport;
  readonly stackOf: (stack: number) => StackInfo | null;
  readonly largest: LargestBlock | null; // among the blocks under the pointer that are drawn as a sum; null: not known yet
}

export function Tooltip({ hover, dragged, picture, passing, predicted, file, view, stackOf, largest }: TooltipProps) {
  const lines = dragged === null ? [...linesOf(hover, picture, file, view, stackOf, largest), ...passingAt(hover, passing), ...(Number.isNaN(hover.value) ? [] : predictedAt(predicted, hover.position))] : measured(dragged, picture, view);
  if (lines.length === 0) return null;
  const isRight = hover.x > view.box.left + view.box.width / 2;
  const side = isRight ? { right: `calc(100% - ${hover.x - 14}px)` } : { left: `${hover.x + 14}px` };
  return (
    <div class="tooltip" aria-hidden="true" style={{ top: `${hover.y + 14}px`, ...side }}>
      {lines.map((line, i) => (
        <div key={i} class={i === 0 ? 'tooltip-head' : undefined}>{line}</div>
      ))}
    </div>
  );
}

function linesOf(hover: Hover, picture: Picture | null, file: FileMeta, view: Viewport, stackOf: (stack: number) => StackInfo | null, largest: LargestBlock | null): string[] {
  if (hover.instant !== null) return [wordsOf(hover.instant)];
  if (hover.span !== null) return spanWords(hover.span);
  if (picture === null || hover.position < view.from || hover.position > view.to) return [];
  const resolution = (view.to - view.from) / view.box.width;
  const position = axisWords(picture.subject.axis, hover.position, resolution);
  const moment = picture.subject.axis === 'event' ? `event ${position}` : position;
  const { blocks } = picture;
  const { item } = hover;
  if (item === null) return [moment, ...countersAt(picture, hover.position)];
  if (item >= blocks.row.length) {
    const name = words(file.categories[item - blocks.row.length] ?? 'other');
    const { categories, window } = picture.curve;
    const bytes = categories[(item - blocks.row.length) * window.columns + columnAt(window, hover.position)];
    const all = bytes === undefined ? [] : [`all ${name} ${formatBytes(bytes)}`];
    return [`${name}: blocks too small or short to draw`, ...largestWords(largest), ...all, ...countersAt(picture, hover.position), moment, 'click for the largest, zoom in to see them'];
  }
  if (blocks.row[item] === NO_ROW) {
    const name = words(file.categories[blocks.category[item]!] ?? 'other');
    return [`${name}: blocks too small to draw`, ...largestWords(largest), ...countersAt(picture, hover.position), moment, 'click for the largest, zoom in to see them'];
  }
  const size = blocks.size[item]!;
  const name = labelOf(stackOf, blocks.stack[item]!, blocks.forward_stack[item]!) ?? '';
  return [
    `${formatBytes(size)}  ${name}`,
    formatExactBytes(size),
    `${words(file.categories[blocks.category[item]!] ?? 'unknown')}, stream ${file.streams[blocks.stream[item]!] ?? '?'}`,
    lifeWords(picture.subject.axis, blocks.start[item]!, blocks.end[item]!, resolution),
    ...countersAt(picture, hover.position),
    moment,
  ];
}

/** Names the owner of most of what is drawn as a sum. */
export function largestWords(largest: LargestBlock | null): string[] {
  return largest === null ? [] : [`largest: ${formatBytes(largest.bytes)}  ${largest.name}`];
}

/** Describes the matching memory at the moment under the pointer, anywhere in the plot. */
export function passingAt(hover: Hover, passing: PassingCurve | null): string[] {
  if (passing === null || Number.isNaN(hover.value)) return [];
  const bytes = bytesAt(passing, hover.position);
  return bytes === null ? [] : [`filter: ${formatBytes(bytes)} here`];
}

/** Describes a step, phase or range: its name, its duration, and where it is. */
export function spanWords(span: SpanMeta): string[] {
  const events = span.end - span.begin;
  return [
    span.name, formatDuration(span.end_ns - span.begin_ns),
    `${plural(events, 'event')}, from event ${span.begin.toLocaleString('en')}`,
  ];
}

function lifeWords(axis: Axis, start: number, end: number, resolution: number): string {
  const held = end === Infinity ? 'never freed' : axis === 'time' ? `held ${formatDuration(end - start)}` : axis === 'event' ? `held ${(end - start).toLocaleString('en')} events` : `held ${(end - start).toPrecision(3)} steps`;
  return `${held}, from ${axis === 'event' ? 'event ' : ''}${axisWords(axis, start, resolution)}`;
}

// Describes what the column shows: the state at its peak.
export function countersAt({ curve }: Pick<Picture, 'curve'>, position: number): string[] {
  const c = columnAt(curve.window, position);
  const live = curve.series.get('live');
  const words = live === undefined || Number.isNaN(live.max[c]!) ? [] : [`live ${formatBytes(live.max[c]!)} after event ${formatCount(curve.peak[c]!)}${live.min[c] === live.max[c] ? '' : ', the most here'}`];
  const reserved = curve.series.get('reserved')?.max[c];
  if (reserved !== undefined && !Number.isNaN(reserved)) words.push(`reserved ${formatBytes(reserved)}`);
  for (const [name, { value, ns }] of curve.samples) {
    if (Number.isNaN(value[c]!)) continue;
    const age = curve.ns[c]! - ns[c]!;
    const when = isSampledIn(ns, c) || age <= 0 ? 'sampled here' : `sampled ${formatDuration(age)} earlier`;
    words.push(`${name === 'driver_used' ? 'driver' : 'process'} used ${formatBytes(value[c]!)}, ${when}`);
  }
  return words;
}

function measured(dragged: NonNullable<Dragged>, picture: Picture | null, view: Viewport): string[] {
  if (picture === null) return [];
  const [from, to] = [dragged.x0, dragged.x1].map((x) => positionAt(view, x)).sort((a, b) => a - b) as [number, number];
  const [a, b] = [columnAt(picture.curve.window, from), columnAt(picture.curve.window, to)];
  const { axis } = picture.subject;
  const length = axis === 'time' ? formatDuration(to - from) : axis === 'event' ? `${Math.round(to - from).toLocaleString('en')} events` : `${(to - from).toPrecision(3)} steps`;
  const live = picture.curve.series.get('live');
  const events = picture.curve.event[b]! - picture.curve.event[a]!;
  const grown = live === undefined ? '' : `live ${formatDelta(live.mid[b]! - live.mid[a]!)}`;
  const ns = picture.curve.ns[b]! - picture.curve.ns[a]!;
  return [length, grown, axis === 'event' ? formatDuration(ns) : `${events.toLocaleString('en')} events`].filter((line) => line !== '');
}
