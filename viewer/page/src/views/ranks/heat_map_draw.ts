// Draws the heat map of ranks on a canvas.

import type { Ranks } from '../../data/protocol';
import { mix, SHADES } from '../../render/palette';
import type { Theme } from '../../render/theme';
import { cellAt, HEADING, headingsOf, LABELS, shadeOf, type HeatMapLayout, type Spot } from './heat_map';

const LABEL_HEIGHT = 13; // px
const SIGN = 3; // px, radius of the sign of a rank that differs

export interface HeatMapPicture {
  readonly ranks: Ranks;
  readonly layout: HeatMapLayout;
  readonly scale: number;
  readonly spot: Spot;
  readonly top: number; // px scrolled
  readonly width: number;
  readonly height: number;
  readonly theme: Theme;
}

/** Returns the colour of a strength from -1 to 1. */
export function colorOf(shade: number, theme: Theme): string {
  const { vermilion, blue } = SHADES[theme.scheme];
  return mix(theme.panel, shade < 0 ? blue : vermilion, Math.abs(shade));
}

export function drawHeatMap(context: CanvasRenderingContext2D, picture: HeatMapPicture): void {
  const { ranks, layout, top, height } = picture;
  const { rowHeight } = layout;
  context.font = picture.theme.font;
  context.textBaseline = 'middle';
  const first = Math.max(0, Math.floor((top - rowHeight) / rowHeight));
  const end = Math.min(ranks.rows.length, Math.ceil((top + height - HEADING) / rowHeight));
  context.save();
  context.beginPath();
  context.rect(0, HEADING, picture.width, height - HEADING);
  context.clip();
  for (let row = first; row < end; ++row) drawRow(context, picture, row);
  drawSpot(context, picture);
  context.restore();
  drawHeadings(context, picture);
}

function yOf({ layout, top }: HeatMapPicture, row: number): number {
  return HEADING + row * layout.rowHeight - top;
}

function drawRow(context: CanvasRenderingContext2D, picture: HeatMapPicture, row: number): void {
  const { ranks, layout, scale, theme } = picture;
  const { rowHeight } = layout;
  const rank = ranks.rows[row]!;
  const y = yOf(picture, row);
  // Cells of narrow rows touch each other: there is no room for gaps.
  const gap = rowHeight >= 8 ? 1 : 0;
  layout.columns.forEach(({ x, width }, column) => {
    const cell = cellAt(ranks, row, column);
    if (cell === null) return;
    context.fillStyle = colorOf(shadeOf(cell, scale), theme);
    context.fillRect(x, y, width - (width >= 8 ? 1 : 0), rowHeight - gap);
  });
  if (rank.differs) {
    context.fillStyle = theme.warn;
    context.beginPath();
    context.arc(SIGN, y + rowHeight / 2, Math.min(SIGN, rowHeight / 2), 0, 2 * Math.PI);
    context.fill();
  }
  const labelled = Math.ceil(LABEL_HEIGHT / rowHeight);
  if (row % labelled !== 0) return;
  context.fillStyle = rank.differs ? theme.fg : theme.muted;
  context.fillText(rank.name, 3 * SIGN, y + Math.max(rowHeight, LABEL_HEIGHT) / 2, LABELS - 4 * SIGN);
}

function drawSpot(context: CanvasRenderingContext2D, picture: HeatMapPicture): void {
  const { layout, spot, theme } = picture;
  const column = layout.columns[spot.column];
  if (column === undefined) return;
  context.strokeStyle = theme.fg;
  context.lineWidth = 2;
  context.strokeRect(column.x - 1, yOf(picture, spot.row) - 1, column.width + 1, layout.rowHeight + 1);
}

function drawHeadings(context: CanvasRenderingContext2D, { ranks, layout, width, theme }: HeatMapPicture): void {
  context.fillStyle = theme.muted;
  const widthOf = (words: string): number => context.measureText(words).width;
  for (const { x, words } of headingsOf(ranks, layout, width, widthOf)) context.fillText(words, x, HEADING / 2);
}
