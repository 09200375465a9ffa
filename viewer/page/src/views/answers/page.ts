// An answer as a page, before it becomes elements: its tables, and the link of each number. Made by
// pure functions from the JSON that the program prints (docs/schemas).

import { formatBytes, formatDelta, formatExactBytes } from '../../base/format_bytes';
import type { Json } from '../../base/json';
import type { ViewName } from '../../state/state';

export interface Page {
  /** quiet: nothing to worry about. early: too little was seen to decide. */
  readonly tone: 'finding' | 'quiet' | 'early';
  readonly facts: readonly (readonly [string, Cell])[]; // beside the headline
  readonly notes: readonly string[];
  readonly sections: readonly Section[];
  readonly progress: { readonly have: number; readonly need: number; readonly what: string } | null;
}

export interface Section {
  readonly title: string;
  readonly note: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}
export interface Column {
  readonly title: string;
  readonly numeric: boolean;
}
export interface Cell {
  readonly text: string;
  readonly title: string; // the exact value; '' : nothing to add
  readonly link: Link | null;
}

/** The blocks behind a number: the state that following the link sets. */
export interface Link {
  readonly view: ViewName;
  readonly device: number | null; // null: keep the lane
  readonly heap: string;
  readonly t_ns: number | null; // of the cursor; null: keep the cursor
  readonly stack: number | null;
  readonly category: string;
  readonly text: string; // of the filter
}

export const NO_LINK: Link = { view: 'timeline', device: null, heap: '', t_ns: null, stack: null, category: '', text: '' };

export const text = (value: string, link: Link | null = null): Cell => ({ text: value, title: '', link });
export const bytes = (value: number, link: Link | null = null): Cell => ({
  text: formatBytes(value),
  title: formatExactBytes(value),
  link,
});
export const delta = (value: number, link: Link | null = null): Cell => ({
  text: formatDelta(value),
  title: formatExactBytes(value),
  link,
});
export const named = (title: string): Column => ({ title, numeric: false });
export const numbers = (title: string): Column => ({ title, numeric: true });

/**
 * Returns 7 for 'stack/7', and null for any other text. For a backward block's 'stack/7+3' it
 * returns the block's own stack, 7.
 */
export function stackNumber(id: string): number | null {
  const match = /^stack\/(\d+)/.exec(id);
  return match === null ? null : Number(match[1]);
}

/**
 * Describes where a row's memory was allocated. For memory of a backward pass, this is the line of
 * the forward call.
 */
export function stackWords(row: Json): string {
  const forward = row.list('forward_frames');
  return forward.length > 0 ? `backward of ${frameWords(forward)}` : frameWords(row.list('frames'));
}

/**
 * Returns 'forward (model.py:88)': the innermost frame of the program itself, otherwise the
 * innermost that is not the allocator's.
 */
export function frameWords(frames: readonly Json[]): string {
  const frame = frames.find((each) => each.text('role') === 'own') ?? frames.find((each) => each.text('role') !== 'allocator') ?? frames[0];
  return frame === undefined ? 'unknown stack' : oneFrame(frame);
}

export function oneFrame(frame: Json): string {
  if (frame.isNull()) return '';
  const file = frame.text('file').split('/').at(-1) ?? '';
  const line = frame.numberOrNull('line');
  return file === '' ? frame.text('function') : `${frame.text('function')} (${file}${line === null ? '' : `:${line}`})`;
}

export function deviceName(device: number | null): string {
  return device === null || device < 0 ? 'host memory' : `GPU ${device}`;
}
