// What the heat map of ranks shows: a row for each rank, and in it how much each peak differs from
// the median of all ranks. The first column is the peak of the whole recording, the others are
// those of groups of steps.

import { formatBytes, formatDelta } from '../../base/format_bytes';
import type { RankRow, Ranks } from '../../data/protocol';

/** The column of the whole recording. */
export const WHOLE = 0;

/** Differences that full colours may stand for. */
const SCALES = [0.05, 0.1, 0.2, 0.5, 1] as const;

export interface Cell {
  readonly bytes: number;
  readonly median: number;
}

export function columnCount(ranks: Ranks): number {
  return 1 + ranks.median_step_peaks.length;
}

/** Returns null if the rank did not take these steps. */
export function cellAt(ranks: Ranks, row: number, column: number): Cell | null {
  const rank = ranks.rows[row];
  if (rank === undefined) return null;
  if (column === WHOLE) return { bytes: rank.peak_bytes, median: ranks.median_peak_bytes };
  const bytes = rank.step_peaks[column - 1];
  const median = ranks.median_step_peaks[column - 1];
  return bytes === undefined || median === undefined ? null : { bytes, median };
}

/** Returns the difference as a share of the median: 0.5 is half as much again. */
export function differenceOf({ bytes, median }: Cell): number {
  if (bytes === median) return 0;
  return median === 0 ? 1 : bytes / median - 1;
}

/**
 * Returns the difference that has the full colour: the smallest one of a scale that no cell
 * exceeds, so that noise of a few percent stays pale.
 */
export function scaleOf(ranks: Ranks): number {
  let most = 0;
  for (let row = 0; row < ranks.rows.length; ++row) {
    for (let column = 0; column < columnCount(ranks); ++column) {
      const cell = cellAt(ranks, row, column);
      if (cell !== null) most = Math.max(most, Math.abs(differenceOf(cell)));
    }
  }
  return SCALES.find((scale) => most <= scale) ?? SCALES[SCALES.length - 1]!;
}

/** Returns the colour's strength, from -1 (much less than the median) to 1 (much more). */
export function shadeOf(cell: Cell, scale: number): number {
  return Math.min(1, Math.max(-1, differenceOf(cell) / scale));
}

/** Returns the steps of a column, from 1 and inclusive; null for the whole recording. */
export function stepsOf(ranks: Ranks, rank: RankRow, column: number): { readonly first: number; readonly last: number } | null {
  if (column === WHOLE) return null;
  const first = (column - 1) * ranks.steps_per_group + 1;
  return { first, last: Math.min(column * ranks.steps_per_group, Math.max(first, rank.steps)) };
}

/** Returns 'whole recording', 'step 7' or 'steps 9 to 12'. */
export function columnWords(ranks: Ranks, rank: RankRow, column: number): string {
  const steps = stepsOf(ranks, rank, column);
  if (steps === null) return 'whole recording';
  return steps.first === steps.last ? `step ${steps.first}` : `steps ${steps.first} to ${steps.last}`;
}

/** Returns 'rank 3, step 7: 1.20 GiB, +300 MiB (+33 %) from the median'. */
export function cellWords(ranks: Ranks, row: number, column: number): string {
  const rank = ranks.rows[row];
  if (rank === undefined) return '';
  const cell = cellAt(ranks, row, column);
  const place = `${rank.name}, ${columnWords(ranks, rank, column)}`;
  if (cell === null) return `${place}: it took ${rank.steps === 0 ? 'no steps' : `only ${rank.steps}`}`;
  const delta = cell.bytes - cell.median;
  if (delta === 0) return `${place}: ${formatBytes(cell.bytes)}, the median`;
  const percent = cell.median === 0 ? '' : ` (${percentWords(differenceOf(cell))})`;
  return `${place}: ${formatBytes(cell.bytes)}, ${formatDelta(delta)}${percent} from the median`;
}

/** Returns '+33 %' or '-0.4 %'. */
export function percentWords(share: number): string {
  const percent = 100 * share;
  const digits = Math.abs(percent) < 9.95 ? percent.toFixed(1) : percent.toFixed(0);
  return `${percent > 0 ? '+' : ''}${digits} %`;
}

/** Where the parts of the picture are, in px. */
export interface HeatMapLayout {
  readonly rowHeight: number;
  readonly height: number; // of all rows and the heading
  readonly columns: readonly { readonly x: number; readonly width: number }[];
}

export const HEADING = 22;
export const LABELS = 104;
const WHOLE_WIDTH = 56;
const GAP = 8;
const SMALLEST_ROW = 4;
const LARGEST_ROW = 24;

export function layOut(ranks: Ranks, width: number, height: number): HeatMapLayout {
  const count = ranks.rows.length;
  const fitting = Math.floor((height - HEADING) / Math.max(1, count));
  const rowHeight = Math.min(LARGEST_ROW, Math.max(SMALLEST_ROW, fitting));
  const groups = columnCount(ranks) - 1;
  const left = LABELS + WHOLE_WIDTH + GAP;
  const each = Math.max(1, width - left) / Math.max(1, groups);
  const columns = [{ x: LABELS, width: WHOLE_WIDTH }];
  for (let i = 0; i < groups; ++i) columns.push({ x: left + i * each, width: each });
  return { rowHeight, height: HEADING + count * rowHeight, columns };
}

const HEADING_GAP = 12; // px between two headings

/** Returns the headings of as many columns as have room for theirs, in `width` px. */
export function headingsOf(ranks: Ranks, { columns }: HeatMapLayout, width: number, widthOf: (words: string) => number): { readonly x: number; readonly words: string }[] {
  const headings = [{ x: columns[WHOLE]!.x, words: 'peak' }];
  const [longest] = [...ranks.rows].sort((a, b) => b.steps - a.steps);
  if (longest === undefined) return headings;
  let free = 0;
  columns.forEach(({ x }, column) => {
    if (column === WHOLE || x < free) return;
    const words = columnWords(ranks, longest, column).replace(' to ', '–');
    const end = x + widthOf(words);
    if (end > width) return;
    headings.push({ x, words });
    free = end + HEADING_GAP;
  });
  return headings;
}

export interface Spot {
  readonly row: number;
  readonly column: number;
}

/** Returns the cell at a position of the scrolled picture; null: none. */
export function spotAt(ranks: Ranks, { rowHeight, columns }: HeatMapLayout, x: number, y: number): Spot | null {
  const row = Math.floor((y - HEADING) / rowHeight);
  if (y < HEADING || row >= ranks.rows.length) return null;
  const column = columns.findIndex((each) => x >= each.x && x < each.x + each.width);
  return column < 0 ? null : { row, column };
}

/** Returns the cell to which a key moves; null if the key has no such meaning. */
export function movedSpot(ranks: Ranks, { row, column }: Spot, key: string): Spot | null {
  const to = (nextRow: number, nextColumn: number): Spot => ({
    row: Math.min(Math.max(0, nextRow), ranks.rows.length - 1),
    column: Math.min(Math.max(0, nextColumn), columnCount(ranks) - 1),
  });
  switch (key) {
    case 'ArrowLeft':
      return to(row, column - 1);
    case 'ArrowRight':
      return to(row, column + 1);
    case 'ArrowUp':
      return to(row - 1, column);
    case 'ArrowDown':
      return to(row + 1, column);
    case 'Home':
      return to(0, column);
    case 'End':
      return to(ranks.rows.length - 1, column);
    default:
      return null;
  }
}
