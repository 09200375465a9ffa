// An answer as a page, before it becomes elements: its tables, and the link of each number. Made by
// pure functions from the JSON that the program prints (docs/schemas).

import { formatBytes, formatDelta, formatExactBytes } from '../../base/format_bytes';
import type { Json } from '../../base/json';
import type { Layer } from '../../widgets/layers_chart';
import type { BarMark, BarPart } from '../../widgets/stacked_bar';
import type { Trend } from '../../widgets/trend_chart';
import type { ColorBy, ViewName } from '../../state/state';

export interface Page {
  readonly facts: readonly (readonly [string, Cell])[]; // beside the headline
  readonly notes: readonly string[];
  readonly charts: readonly Chart[];
  readonly cards: readonly Card[]; // beside the charts
  readonly sections: readonly Section[];
  readonly progress: { readonly have: number; readonly need: number; readonly what: string } | null;
}

export const EMPTY_PAGE: Page = { facts: [], notes: [], charts: [], cards: [], sections: [], progress: null };

export type Chart =
  | { readonly kind: 'trend'; readonly trend: Trend }
  | { readonly kind: 'bar'; readonly title: string; readonly parts: readonly LinkedPart[]; readonly marks: readonly BarMark[] }
  | { readonly kind: 'memory'; readonly title: string; readonly device: number | null }
  | { readonly kind: 'layers'; readonly title: string; readonly layers: readonly Layer[]; readonly moments: readonly string[] };

export interface LinkedPart extends BarPart {
  readonly link: Link | null;
}

/** What is known of one cause: what it is, the line of code, what helps. */
export interface Card {
  readonly title: Cell;
  readonly lines: readonly { readonly name: string; readonly cell: Cell; readonly isCode: boolean }[];
}

export interface Section {
  readonly title: string;
  /** Under or beside the charts, or as wide as the page. By default two sections are side by side. */
  readonly place?: 'under' | 'beside' | 'wide';
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
  readonly steps: number; // that timelines show up to t_ns; 0: the range is kept if it contains t_ns
  readonly colorBy: ColorBy | null; // null: keep the colours
  readonly whatif: string; // settings whose reserved memory the timeline predicts; '': keep those chosen
}

export const NO_LINK: Link = {
  view: 'timeline', device: null, heap: '', t_ns: null, stack: null, category: '', text: '', steps: 0, colorBy: null, whatif: '',
};

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
export const line = (name: string, cell: Cell): Card['lines'][number] => ({ name, cell, isCode: false });
export const codeLine = (name: string, code: string): Card['lines'][number] => ({ name, cell: text(code), isCode: true });
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

export function oneFrame(frame: Json): string {
  if (frame.isNull()) return '';
  const place = placeOf(frame);
  return place === '' ? frame.text('function') : `${frame.text('function')} (${place})`;
}

/** Returns 'model.py:88', or '' if no file is known. */
export function placeOf(frame: Json): string {
  const file = frame.text('file').split('/').at(-1) ?? '';
  const number = frame.numberOrNull('line');
  return file === '' ? '' : `${file}${number === null ? '' : `:${number}`}`;
}

export function deviceName(device: number | null): string {
  return device === null || device < 0 ? 'host memory' : `GPU ${device}`;
}
