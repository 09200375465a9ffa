// Pointer and wheel on the timeline.
//
//   wheel            zoom at the pointer; in bytes over the gutter or with Alt
//   Shift + wheel    go earlier or later; so does a wheel that turns sideways
//   drag             pan (in bytes too if zoomed in bytes)
//   Shift + drag     select the range, and open its breakdown; over the gutter, a band of bytes
//   Shift + Ctrl + drag   select the box, and open its breakdown
//   Ctrl + drag      zoom into the box
//   click            select
//   double click     show the whole recording

import { urgent } from '../../base/activity';
import type { DataSource } from '../../data/data_source';
import { isInside, positionAt, valueAt } from '../../render/renderer';
import { zoomed } from '../../state/navigator';
import { NO_ROW, type EventRange } from '../../data/protocol';
import { fileOf } from '../../state/scope';
import type { ViewProps } from '../view';
import { GUTTER } from './areas';
import type { Dragged } from './draw_overlay';
import { largestBlock } from './largest_block';
import type { Hover, TimelineCanvas } from './timeline_canvas';

export const CLICK_PIXELS = 4;
const ZOOM_PER_PIXEL = 0.0018;

type Props = Pick<ViewProps, 'store' | 'source' | 'navigator'>;

interface Drag {
  readonly x: number;
  readonly y: number;
  readonly kind: 'move' | NonNullable<Dragged>['kind'];
  readonly range: { readonly from: number; readonly to: number };
  readonly band: { readonly low: number; readonly high: number } | null;
  isMoving: boolean;
}

export function listenToPointer(
  element: HTMLElement, timeline: TimelineCanvas, props: Props,
  onHover: (hover: Hover | null, dragged: Dragged) => void, rowOf: (item: number) => number,
): () => void {
  const abort = new AbortController();
  let drag: Drag | null = null;
  const place = (event: MouseEvent): { x: number; y: number } => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const on = <K extends keyof HTMLElementEventMap>(name: K, handler: (event: HTMLElementEventMap[K]) => void): void => {
    element.addEventListener(name, handler, { signal: abort.signal, passive: false });
  };
  const show = (hover: Hover | null, dragged: Dragged): void => {
    timeline.setHover(hover);
    timeline.setDragged(dragged);
    onHover(hover, dragged);
  };

  on('pointerdown', (event) => {
    if (event.button !== 0) return;
    element.setPointerCapture(event.pointerId);
    const { range, band } = props.store.get();
    const at = place(event);
    drag = { ...at, kind: kindOf(event, at.x < timeline.view().box.left), range, band, isMoving: false };
  });
  on('pointermove', (event) => {
    const { x, y } = place(event);
    if (drag === null) {
      show(timeline.hover(x, y), null);
      return;
    }
    drag.isMoving ||= Math.hypot(x - drag.x, y - drag.y) >= CLICK_PIXELS;
    if (!drag.isMoving) return;
    if (drag.kind === 'move') {
      moveBy(timeline, props, drag, x - drag.x, y - drag.y);
      show(null, null);
    } else {
      show(timeline.hover(x, y), { kind: drag.kind, x0: drag.x, y0: drag.y, x1: x, y1: y });
    }
  });
  on('pointerup', (event) => {
    const { x, y } = place(event);
    const ended = drag;
    drag = null;
    if (ended === null) return;
    if (!ended.isMoving) click(timeline, props, timeline.hover(x, y), rowOf);
    else if (ended.kind === 'box') zoomIntoBox(timeline, props, ended, x, y);
    else if (ended.kind !== 'move') select(props, brushOf(timeline, props, { kind: ended.kind, x0: ended.x, y0: ended.y, x1: x, y1: y }));
    show(timeline.hover(x, y), null);
  });
  on('pointercancel', () => {
    drag = null;
    show(null, null);
  });
  on('pointerleave', () => {
    if (drag === null) show(null, null);
  });
  onDoubleClick(element, () => props.navigator.fit(), abort.signal);
  on('wheel', (event) => {
    event.preventDefault();
    turnWheel(timeline, props, event, place(event));
    show(null, null);
  });
  return () => abort.abort();
}

// What the first click opens may appear under the second click, which still belongs to the plot and
// must press nothing else. A double click is detected by the button events, not by `dblclick`: if
// the pressed element is gone before the release, there is no click event.
function onDoubleClick(element: HTMLElement, handler: () => void, signal: AbortSignal): void {
  let isOurs = false;
  let x = 0;
  let y = 0;
  const on = (name: 'mousedown' | 'mouseup' | 'click', listener: (event: MouseEvent) => void): void => {
    window.addEventListener(name, listener, { signal, capture: true });
  };
  on('mousedown', (event) => {
    if (event.detail <= 1) isOurs = event.button === 0 && event.target === element;
    [x, y] = [event.clientX, event.clientY];
  });
  on('mouseup', (event) => {
    if (event.detail === 2 && isOurs && Math.hypot(event.clientX - x, event.clientY - y) < CLICK_PIXELS) handler();
  });
  on('click', (event) => {
    if (event.detail <= 1 || !isOurs || event.target === element) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

function moveBy(timeline: TimelineCanvas, { store, navigator }: Props, drag: Drag, dx: number, dy: number): void {
  const view = timeline.view();
  const by = (-dx / view.box.width) * (drag.range.to - drag.range.from);
  if (drag.band !== null) {
    const up = (dy / view.box.height) * (drag.band.high - drag.band.low);
    store.update({ band: clampBand({ low: drag.band.low + up, high: drag.band.high + up }, timeline.top(store.get())) });
  }
  navigator.setRange({ from: drag.range.from + by, to: drag.range.to + by });
}

function kindOf({ shiftKey, ctrlKey, metaKey }: PointerEvent, isInGutter: boolean): Drag['kind'] {
  const isBox = ctrlKey || metaKey;
  if (!shiftKey) return isBox ? 'box' : 'move';
  return isInGutter ? 'band' : isBox ? 'select' : 'measure';
}

/** Returns the part of the recording that is dragged out; null if it is empty, or for zooming. */
export function brushOf(timeline: TimelineCanvas, { store, navigator }: Pick<Props, 'store' | 'navigator'>, dragged: Dragged): EventRange | null {
  if (dragged === null || dragged.kind === 'box') return null;
  const view = timeline.view();
  const { axis, layout } = store.get();
  const events = (dragged.kind === 'band' ? [view.from, view.to] : [dragged.x0, dragged.x1].map((x) => positionAt(view, x))).map((position) => navigator.eventAt(position));
  const [from, to] = [Math.min(...events), Math.max(...events)];
  if (dragged.kind === 'measure') return from === to ? null : { from, to, box: null };
  const [low, high] = [dragged.y0, dragged.y1].map((y) => Math.max(0, Math.round(valueAt(view, y)))).sort((a, b) => a - b);
  return low! < high! ? { from, to, box: { axis, layout, low: low!, high: high! } } : null;
}

function select({ store }: Props, brush: EventRange | null): void {
  if (brush === null) return;
  const { from, to } = brush;
  store.update(({ breakdown }) => ({
    selection: { kind: 'range', ...brush }, base: from, cursor: to,
    breakdown: { ...breakdown, open: true, of: breakdown.of === 'cursor' ? 'follow' : breakdown.of },
  }));
}

function zoomIntoBox(timeline: TimelineCanvas, { store, navigator }: Props, drag: Drag, x: number, y: number): void {
  const view = timeline.view();
  const [from, to] = [drag.x, x].map((each) => positionAt(view, each)).sort((a, b) => a - b);
  const [low, high] = [drag.y, y].map((each) => valueAt(view, each)).sort((a, b) => a - b);
  // A flat box zooms on the axis only.
  if (Math.abs(y - drag.y) > 12) store.update({ band: clampBand({ low: low!, high: high! }, timeline.top(store.get())) });
  if (Math.abs(x - drag.x) > 3) navigator.setRange({ from: from!, to: to! });
}

function turnWheel(timeline: TimelineCanvas, { store, navigator }: Props, event: WheelEvent, { x, y }: { readonly x: number; readonly y: number }): void {
  const view = timeline.view();
  const { sideways, factor } = turnOf(event);
  if (sideways !== 0) navigator.pan(sideways / view.box.width);
  else if (event.altKey || (x < GUTTER && isInside({ ...view.box, left: 0, width: GUTTER }, x, y))) zoomBytes(timeline, store, factor, valueAt(view, y));
  else navigator.zoom(factor, timeline.pointedAt(Math.max(view.box.left, x), y)); // a peak stays under the pointer
}

/**
 * Returns by how many pixels a turn of the wheel moves sideways; if by none, the factor by which it
 * zooms.
 */
export function turnOf(event: WheelEvent): { readonly sideways: number; readonly factor: number } {
  const pixels = event.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? 1 : 24;
  const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
  const isSideways = Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY);
  return { sideways: isSideways ? sideways * pixels : 0, factor: Math.exp(event.deltaY * pixels * ZOOM_PER_PIXEL) };
}

/** Zooms in bytes (or addresses) around a value. */
export function zoomBytes(timeline: TimelineCanvas, store: ViewProps['store'], factor: number, at: number): void {
  const { low, high } = timeline.view();
  const next = zoomed({ from: low, to: high }, factor, at);
  store.update({ band: clampBand({ low: next.from, high: next.to }, timeline.top(store.get())) });
}

/** Returns null if the band would cover everything. */
export function clampBand(band: { readonly low: number; readonly high: number }, top: number): { low: number; high: number } | null {
  const size = Math.max(1024, band.high - band.low);
  if (size >= top) return null;
  const low = Math.round(Math.min(Math.max(0, (band.low + band.high) / 2 - size / 2), top - size));
  return { low, high: Math.round(low + size) };
}

function click(timeline: TimelineCanvas, { store, source }: Props, hover: Hover, rowOf: (item: number) => number): void {
  if (hover.instant !== null) {
    store.update({ cursor: hover.instant.event, selection: { kind: 'instant', event: hover.instant.event } });
    return;
  }
  if (!isInside({ ...timeline.view().box, top: 0, height: 1e9 }, hover.x, hover.y)) return;
  const cursor = timeline.momentAt(hover.position);
  const row = hover.item === null ? NO_ROW : rowOf(hover.item);
  store.update({ cursor, selection: row === NO_ROW ? { kind: 'none' } : { kind: 'block', row } });
  if (hover.item === null || row !== NO_ROW) return;
  const category = fileOf(store.get())?.categories[timeline.categoryOf(hover.item)];
  if (category !== undefined) void urgent.track(selectLargest(store, source, category, cursor));
}

// Selects the largest block of a category that is live after an event, for a click on blocks that
// are too small to be drawn.
async function selectLargest(store: ViewProps['store'], source: DataSource, category: string, event: number): Promise<void> {
  const state = store.get();
  const largest = await largestBlock(source, state, category, event);
  const now = store.get();
  const isSame = now.cursor === event && now.file === state.file && now.lane === state.lane && now.selection.kind === 'none';
  if (isSame && largest !== null) store.update({ selection: { kind: 'block', row: largest.row } });
}
