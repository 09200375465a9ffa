// Draws what lies over the picture: the selection, the moments that are compared, the block under
// the pointer, and what the pointer drags out.

import type { BlockTile } from '../../data/protocol';
import type { Quads } from '../../render/quads';
import { xOf, yOf, type Box, type Renderer, type Viewport } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import { cursorEvent } from '../../state/scope';
import type { Selection, State } from '../../state/state';
import { boxOf } from './draw_plot';
import { drawComparedRanges, outlineRange } from './draw_ranges';

const LOWEST_OUTLINED = 12; // pixels, of a block of the selected call site

/** What the pointer is dragging out, in pixels. */
export type Dragged = { readonly kind: 'measure' | 'band' | 'select' | 'box'; readonly x0: number; readonly y0: number; readonly x1: number; readonly y1: number } | null;

/** The blocks of the picture that is shown. `quadBegin`: the first quad of each, and the end of the last. */
export interface DrawnBlocks {
  readonly blocks: BlockTile;
  readonly quads: Quads;
  readonly quadBegin: Uint32Array;
}

export class Overlay {
  /** `positionOf` returns the position of an event on the axis, or null if it is not known. */
  constructor(
    private readonly renderer: Renderer,
    private readonly theme: Theme,
    private readonly view: Viewport,
    private readonly positionOf: (event: number) => number | null,
  ) {}

  /** `drawn` is null if its numbers of blocks are not those of the state. */
  drawSelection(state: State, drawn: DrawnBlocks | null): void {
    const { selection } = state;
    if (selection.kind === 'range') {
      const [from, to] = [this.positionOf(selection.from), this.positionOf(selection.to)];
      const { box } = selection;
      const isDrawn = box !== null && box.axis === state.axis && box.layout === state.layout;
      if (from !== null && to !== null) this.outlineRange(xOf(this.view, from), xOf(this.view, to), isDrawn ? [yOf(this.view, box.high), yOf(this.view, box.low)] : null);
    }
    if (drawn !== null && (selection.kind === 'block' || selection.kind === 'stack')) this.outlineSelected(selection, drawn);
    drawComparedRanges(this.renderer, this.theme, state, this.view, this.positionOf);
  }

  /** Draws the cursor and the moment that it is compared with. */
  drawMoments(state: State, box: Box): void {
    this.drawMoment(state.base, box, this.theme.warn, [4, 3]);
    this.drawMoment(cursorEvent(state), box, this.theme.accent, state.cursor === null ? [2, 5] : []);
  }

  outlineHovered(item: number, drawn: DrawnBlocks): void {
    if (item < drawn.blocks.row.length) this.outlineItem(item, drawn, this.theme.fg, 1, 0);
  }

  drawDragged(dragged: NonNullable<Dragged>): void {
    const [left, right] = [Math.min(dragged.x0, dragged.x1), Math.max(dragged.x0, dragged.x1)];
    const [top, bottom] = [Math.min(dragged.y0, dragged.y1), Math.max(dragged.y0, dragged.y1)];
    const { box } = this.view;
    if (dragged.kind === 'measure') this.outlineRange(left, right, null);
    else if (dragged.kind === 'band') this.outlineRange(box.left, box.left + box.width, [top, bottom]);
    else if (dragged.kind === 'select') this.outlineRange(left, right, [top, bottom]);
    else this.renderer.outline({ left, top, width: right - left, height: bottom - top }, this.theme.accent, 1.5);
  }

  private outlineRange(x0: number, x1: number, ys: readonly [number, number] | null): void {
    outlineRange(this.renderer, this.theme, x0, x1, this.view, ys);
  }

  private drawMoment(event: number | null, box: Box, color: string, dash: readonly number[]): void {
    const position = event === null ? null : this.positionOf(event);
    if (position === null || position < this.view.from || position > this.view.to) return;
    const x = xOf(this.view, position);
    this.renderer.line(x, box.top, x, box.top + box.height, color, dash);
  }

  private outlineSelected(selection: Selection, drawn: DrawnBlocks): void {
    const { row, stack, size } = drawn.blocks;
    for (let i = 0; i < row.length; ++i) {
      if (selection.kind === 'block' && row[i] === selection.row) this.outlineItem(i, drawn, this.theme.fg, 2, 0);
      // The blocks of a call site have a colour of their own.
      if (selection.kind === 'stack' && stack[i] === selection.stack && size[i]! > 0) this.outlineItem(i, drawn, this.theme.accent, 2, LOWEST_OUTLINED);
    }
  }

  // Fills what is lower than `filledBelow` pixels, because an outline would hide it anyway.
  private outlineItem(item: number, { quads, quadBegin }: DrawnBlocks, color: string, width: number, filledBelow: number): void {
    if (item + 1 >= quadBegin.length) return;
    const [first, last] = [quadBegin[item]!, quadBegin[item + 1]!];
    for (let i = first; i < last; ++i) {
      const box = boxOf(this.view, quads.x0[i]!, quads.x1[i]!, quads.y0[i]!, quads.y1[i]!);
      if (box === null) continue;
      if (box.height < filledBelow) {
        this.renderer.rect(box, color);
        continue;
      }
      const right = box.left + box.width;
      const bottom = box.top + box.height;
      for (const y of [box.top, bottom - width]) this.renderer.rect({ left: box.left, top: y, width: box.width, height: width }, color);
      if (i === first) this.renderer.rect({ left: box.left, top: box.top, width, height: box.height }, color);
      if (i === last - 1) this.renderer.rect({ left: right - width, top: box.top, width, height: box.height }, color);
    }
  }
}
