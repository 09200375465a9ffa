// The two canvases of the timeline: the picture, redrawn when its content changes, and an overlay
// that follows pointer and cursor. A frame draws what is loaded; it never waits for data.

import { activity, urgent } from '../../base/activity';
import { formatBytes } from '../../base/format_bytes';
import { columnAt } from '../../data/columns';
import { StackCache } from '../../data/stack_cache';
import type { FileMeta, LaneMeta, PassingCurve, PredictedCurve, SpanMeta } from '../../data/protocol';
import { Canvas2dRenderer } from '../../render/canvas2d_renderer';
import { quadsOfItems, sortByColor, type ColoredQuads } from '../../render/quads';
import { isInside, positionAt, valueAt, xOf, yOf, type Box, type Viewport } from '../../render/renderer';
import { SiteColors } from '../../render/site_colors';
import { readTheme, type Theme } from '../../render/theme';
import { liveOf, stageOf, windowOf } from '../../state/live';
import { domainOf } from '../../state/navigator';
import { notesOf } from '../../state/notes';
import { cursorEvent, fileOf, laneOf } from '../../state/scope';
import type { State } from '../../state/state';
import type { ViewProps } from '../view';
import { areasOf, type Areas } from './areas';
import { colorItems, siteLegend, topSites, type Coloring } from './coloring';
import { fittedTop, topOf } from './fitted_top';
import { boxOf, drawAddress, drawAxes, drawLabels, drawPassing, drawPositions, drawPredicted, drawSamples, drawSpaceNames, drawStacked, stacksOf } from './draw_plot';
import { drawComparedRanges, outlineRange } from './draw_ranges';
import { drawInstants, drawTracks, instantAt, instantsOf, spanAt, type Instant } from './draw_tracks';
import { FilterCurve } from './filter_curve';
import { FoundRows } from './found_rows';
import { highestColumnAt } from './highest_column';
import { HitTest } from './hits';
import { passingItems } from './passing';
import { Prediction } from './prediction';
import { Tiles, type Picture } from './tiles';
import { pixelsOf } from './wanted';

const NOT_KNOWN_YET = 2 ** 50;
const SIZE_RESTS_MS = 150;
const LONGEST_WAIT_MS = 150; // for the answer to a click
const LOWEST_OUTLINED = 12; // pixels, of a block of the selected call site

export interface Hover {
  readonly x: number;
  readonly y: number;
  readonly position: number;
  readonly value: number; // bytes or address; NaN outside of the plot
  readonly item: number | null;
  readonly instant: Instant | null;
  readonly span: SpanMeta | null; // a step, phase or range
}

/** What the pointer is dragging out, in pixels. */
export type Dragged = { readonly kind: 'measure' | 'band' | 'select' | 'box'; readonly x0: number; readonly y0: number; readonly x1: number; readonly y1: number } | null;

export interface Shown {
  readonly picture: Picture;
  readonly coloring: Coloring;
  readonly passing: PassingCurve | null; // null: no filter, or not loaded yet
  readonly predicted: PredictedCurve | null; // null: nothing is to be predicted, or not known yet
  readonly predictionFailure: string; // why nothing can be predicted
}

type Props = Pick<ViewProps, 'store' | 'source' | 'navigator'>;

export class TimelineCanvas {
  readonly stacks: StackCache;
  private readonly tiles: Tiles;
  private readonly found: FoundRows;
  private readonly filterCurve: FilterCurve;
  private readonly prediction: Prediction;
  private readonly base: Canvas2dRenderer;
  private readonly overlay: Canvas2dRenderer;
  private theme: Theme;
  private frame: { readonly end: () => void; isWhole: boolean } | null = null;
  private readonly ends: (() => void)[] = [];
  private shown: Shown | null = null;
  private batch: ColoredQuads | null = null;
  private hits: HitTest | null = null;
  private quadBegin: Uint32Array | null = null;
  private coloredBy: readonly unknown[] = [];
  private hovered: Hover | null = null;
  private dragged: Dragged = null;
  private placesTop = new Map<string, number>();
  private stacksKnown = 0;
  private size = { width: 0, height: 0 }; // of what is drawn; the host's size, except during a resize
  private isResized = true;
  private sizing: { readonly end: () => void } | null = null;
  private waiting: { readonly end: () => void } | null = null; // for the answer to a click

  constructor(
    private readonly host: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly overlayCanvas: HTMLCanvasElement,
    private readonly props: Props,
    private readonly onShown: (shown: Shown | null, failure: string) => void,
    onStacks: () => void,
  ) {
    this.theme = readTheme(host);
    const font = (): string => this.theme.font;
    this.base = new Canvas2dRenderer(canvas, font);
    this.overlay = new Canvas2dRenderer(overlayCanvas, font);
    this.tiles = new Tiles(props.source, () => this.takePicture());
    this.found = new FoundRows(props.source, () => this.invalidateAfterAnswers());
    this.filterCurve = new FilterCurve(props.source, () => this.invalidateAfterAnswers());
    this.prediction = new Prediction(props.source, () => this.invalidateAfterAnswers());
    this.stacks = new StackCache(props.source, () => {
      ++this.stacksKnown;
      onStacks();
      this.invalidateAfterAnswers();
    });
    this.ends.push(props.store.subscribe((state, old) => {
      if (liveOf(state)?.first_window !== liveOf(old)?.first_window) this.stacks.forget();
      else if (liveOf(state)?.names !== liveOf(old)?.names) this.stacks.refresh();
      if (state.theme !== old.theme) this.takeTheme();
      else if (isProgressAlone(state, old)) return;
      else this.invalidate(needsPicture(state, old));
    }));
    const resize = new ResizeObserver(() => {
      this.isResized = true;
      this.invalidateAfterAnswers();
    });
    resize.observe(host);
    this.ends.push(() => resize.disconnect(), () => this.sizing?.end(), () => this.waiting?.end());
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const rescheme = (): void => this.takeTheme();
    scheme.addEventListener('change', rescheme);
    this.ends.push(() => scheme.removeEventListener('change', rescheme));
    this.invalidate();
  }

  stop(): void {
    for (const end of this.ends) end();
    this.tiles.stop();
    this.found.stop();
    this.filterCurve.stop();
    this.prediction.stop();
    this.frame?.end();
    this.frame = null;
  }

  view(): Viewport {
    const state = this.props.store.get();
    const { plot } = this.areas();
    const { low, high } = this.band(state);
    return { from: state.range.from, to: state.range.to, low, high, box: plot };
  }

  areas(): Areas {
    const { file, lane } = this.current();
    return areasOf(file, lane, this.size.width, this.size.height);
  }

  /** Returns the top of everything that the plot could show. */
  top(state: State): number {
    if (state.layout === 'address') return this.placesTop.get(`${state.file}/${state.lane}`) ?? NOT_KNOWN_YET;
    const lane = laneOf(state);
    return lane === null ? 1024 : topOf(lane, this.shown?.predicted?.peak_bytes ?? null);
  }

  private band(state: State): { readonly low: number; readonly high: number } {
    const top = this.top(state);
    if (state.band !== null) return state.band;
    const curve = this.isCurrent() ? this.shown?.picture.curve : undefined;
    // Both what was reserved and what would be remain visible.
    const isWhole = curve === undefined || state.layout === 'address' || this.shown?.predicted != null;
    return { low: 0, high: isWhole ? top : fittedTop(curve, state.range, top, laneOf(state)?.peak_bytes ?? 0) };
  }

  hover(x: number, y: number): Hover {
    const view = this.view();
    const areas = this.areas();
    const inPlot = isInside(areas.plot, x, y);
    const value = inPlot ? valueAt(view, y) : NaN;
    const position = this.pointedAt(x, y);
    const item = inPlot && this.hits !== null && this.isCurrent() ? this.hits.itemAt(position, value) : null;
    const { file, axis } = this.current();
    const instant = y < areas.instants.top + areas.instants.height ? instantAt(instantsOf(file, axis, notesOf(this.props.store.get(), file)), view, x) : null;
    return { x, y, position, value, item, instant, span: spanAt(file, axis, areas, view, x, y) };
  }

  /**
   * Returns the position that a pointer means: in the stacked layout that of the column under or
   * just beside it.
   */
  pointedAt(x: number, y: number): number {
    const view = this.view();
    const picture = this.isCurrent() ? this.shown?.picture : undefined;
    const live = picture?.subject.layout === 'stacked' ? picture.curve.series.get('live') : undefined;
    const column = picture === undefined || live === undefined || !isInside(view.box, x, y) ? null : highestColumnAt(picture.curve.window, live.max, view, x, valueAt(view, y));
    return column ?? positionAt(view, x);
  }

  /** Returns the event that is drawn at a position: in the stacked layout the column's peak. */
  momentAt(position: number): number {
    const picture = this.isCurrent() ? this.shown?.picture : undefined;
    if (picture === undefined || picture.subject.layout !== 'stacked') return this.props.navigator.eventAt(position);
    return picture.curve.peak[columnAt(picture.curve.window, position)]!;
  }

  /** Returns the category of an item of the shown tile, including the areas of the rest. */
  categoryOf(item: number): number {
    const { row, category } = this.shown!.picture.blocks;
    return item < row.length ? category[item]! : item - row.length;
  }

  setHover(hover: Hover | null): void {
    this.hovered = hover;
    const blocks = this.shown?.picture.blocks;
    if (hover?.item != null && blocks !== undefined && hover.item < blocks.row.length) this.stacks.want(this.props.store.get().file, stacksOf(blocks, hover.item));
    this.invalidate(false);
  }

  setDragged(dragged: Dragged): void {
    this.dragged = dragged;
    this.invalidate(false);
  }

  /** Returns the blocks over a position, from the bottom up, as items of the shown tile. */
  itemsAt(position: number): readonly number[] {
    const rows = this.isCurrent() ? (this.shown?.picture.blocks.row.length ?? 0) : 0;
    return (this.hits?.itemsAt(position) ?? []).filter((item) => item < rows);
  }

  // While the tile of another window is on its way, the tile shown uses the previous numbering.
  private isCurrent(): boolean {
    return this.shown?.picture.subject.window === windowOf(this.props.store.get());
  }

  private current(): { readonly state: State; readonly file: FileMeta; readonly lane: LaneMeta; readonly axis: State['axis'] } {
    const state = this.props.store.get();
    return { state, file: fileOf(state)!, lane: laneOf(state)!, axis: state.axis };
  }

  private invalidate(isWhole = true): void {
    if (this.frame !== null) {
      this.frame.isWhole ||= isWhole;
      return;
    }
    const frame = { end: activity.begin(), isWhole };
    this.frame = frame;
    requestAnimationFrame(() => {
      if (this.frame !== frame) return; // stopped meanwhile
      this.frame = null;
      try {
        this.draw(frame.isWhole);
      } finally {
        frame.end();
      }
    });
  }

  // Changes that are not made by hand wait for the answer to a click: a picture may take longer
  // than a frame and would delay the answer. Until then the drawer covers part of the picture.
  private invalidateAfterAnswers(): void {
    if (this.waiting !== null) return;
    if (!urgent.busy()) {
      this.invalidate();
      return;
    }
    const ended = activity.begin();
    // The frame that shows the answer comes first.
    const callOff = urgent.after(() => {
      this.waiting = null;
      this.invalidate();
      ended();
    }, nextFrame, LONGEST_WAIT_MS);
    this.waiting = {
      end: () => {
        callOff();
        ended();
      },
    };
  }

  // Another height needs other tiles, but what was clicked to open the drawer is more urgent, and
  // an edge that is dragged has many heights. So the picture is stretched until the size no longer
  // changes.
  private takeSize(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    this.isResized = false;
    if (width === this.size.width && height === this.size.height) return;
    const isFirst = this.size.width === 0;
    this.size = { width, height };
    // The canvases keep this size until they are redrawn, so that CSS does not stretch them.
    for (const { style } of [this.canvas, this.overlayCanvas]) [style.width, style.height] = [`${width}px`, `${height}px`];
    this.sizing?.end();
    this.sizing = isFirst ? null : this.restOfSize();
  }

  private restOfSize(): { readonly end: () => void } {
    const ended = activity.begin();
    const timer = setTimeout(() => {
      this.sizing = null;
      this.invalidate();
      ended();
    }, SIZE_RESTS_MS);
    return {
      end: () => {
        clearTimeout(timer);
        ended();
      },
    };
  }

  private takeTheme(): void {
    this.theme = readTheme(this.host);
    this.invalidate();
  }

  private takePicture(): void {
    const { picture } = this.tiles;
    if (picture !== null) {
      if (picture.subject.window === windowOf(this.props.store.get())) this.props.navigator.learn(picture.curve);
      this.learnPlaces(picture);
    }
    if (picture === null || this.tiles.failure !== '') this.onShown(this.shown, this.tiles.failure);
    this.invalidateAfterAnswers();
  }

  // The highest address is only known after the first tile.
  private learnPlaces({ subject, blocks }: Picture): void {
    if (subject.layout !== 'address') return;
    const top = blocks.spaces.reduce((most, space) => Math.max(most, space.place + space.size), 0);
    if (top > 0) this.placesTop.set(`${subject.file}/${subject.lane}`, top);
  }

  private draw(isWhole: boolean): void {
    const { state, file, lane } = this.current();
    if (laneOf(state) === null) return;
    if (isWhole && this.isResized && this.waiting === null) this.takeSize();
    if (this.size.width === 0) return;
    const areas = this.areas();
    const view = this.view();
    const subject = { file: state.file, lane: state.lane, axis: state.axis, layout: state.layout, stage: stageOf(state), window: windowOf(state) };
    if (this.sizing === null || !this.tiles.isOf(subject)) {
      this.tiles.look(subject, { range: state.range, domain: domainOf(file, state.axis), width: pixelsOf(areas.plot.width), low: view.low, high: view.high, top: this.top(state), height: areas.plot.height });
    }
    if (isWhole) {
      this.prepare(state, file, lane);
      this.drawBase(state, file, lane, areas, view);
      // A new picture may have shown that less height is enough.
      if (this.band(state).high !== view.high) this.invalidate();
    }
    this.drawOverlay(state, areas, view);
  }

  // Updates colours and indexes of the picture shown, only if something they depend on has changed.
  private prepare(state: State, file: FileMeta, lane: LaneMeta): void {
    const { picture } = this.tiles;
    if (picture === null) {
      this.shown = this.batch = this.hits = null;
      return;
    }
    const hasText = state.filter.text !== '';
    const isOfNow = picture.subject.window === windowOf(state);
    const isFound = hasText && isOfNow ? this.found.look(picture, state.filter) : undefined;
    const passing = isOfNow ? this.filterCurve.look(picture, state.filter) : null;
    const predicted = isOfNow ? this.prediction.look(picture, state, file, lane) : null;
    const predictionFailure = this.prediction.failure;
    const asksStacks = hasText || state.colorBy === 'stack';
    const names = file.categories.length + file.streams.length + file.threads.length + file.roles.length + file.dtypes.length; // may come after the picture
    const hangsOn = [picture, names, state.colorBy, state.filter, this.theme.bg, lane.sites.join(), asksStacks ? this.stacksKnown : 0, isFound, passing, predicted, predictionFailure];
    if (hangsOn.every((value, i) => value === this.coloredBy[i])) return;
    if (this.coloredBy[0] !== picture) {
      this.hits = new HitTest(picture.laidOut.quads);
      this.quadBegin = quadsOfItems(picture.laidOut.quads, picture.laidOut.items);
    }
    this.coloredBy = hangsOn;
    if (hasText) this.stacks.want(state.file, new Set([...picture.blocks.stack, ...picture.blocks.forward_stack]));
    const passes = passingItems(picture.blocks, state.filter, file, (stack) => this.stacks.get(state.file, stack), isFound);
    const sites = new SiteColors(lane.sites, this.theme);
    const coloring = colorItems(picture.blocks, picture.laidOut, state.colorBy, file, sites, this.theme, passes);
    this.batch = sortByColor(picture.laidOut.quads, coloring.colors, coloring.ofItem);
    const legend = state.colorBy === 'stack' ? this.legendOfSites(picture, state, sites) : coloring.legend;
    this.shown = { picture, coloring: { ...coloring, legend }, passing, predicted, predictionFailure };
    this.onShown(this.shown, this.tiles.failure);
  }

  private legendOfSites({ blocks }: Picture, state: State, colors: SiteColors): Coloring['legend'] {
    const sites = topSites(blocks);
    this.stacks.want(state.file, new Set(sites.flatMap(({ stacks }) => stacks.flat()).filter((stack) => stack !== 0)));
    return siteLegend(sites, colors, (stack) => this.stacks.get(state.file, stack));
  }

  private drawBase(state: State, file: FileMeta, lane: LaneMeta, areas: Areas, view: Viewport): void {
    const { base, theme } = this;
    base.begin(this.size.width, this.size.height, theme.bg);
    drawTracks(base, file, state.axis, areas, view, theme);
    if (this.shown !== null && this.batch !== null) {
      const { picture, coloring, passing, predicted } = this.shown;
      if (areas.samples !== null) drawSamples(base, picture.curve, lane, areas.samples, view, theme);
      base.clip(areas.plot);
      if (state.layout === 'address') drawAddress(base, picture, this.batch, view, theme);
      else drawStacked(base, picture, this.batch, lane, view, theme);
      if (passing !== null && state.layout === 'stacked') drawPassing(base, passing, view, theme);
      if (predicted !== null) drawPredicted(base, predicted, view, theme);
      const wanted = drawLabels(base, picture, coloring, view, (stack) => this.stacks.get(state.file, stack));
      this.stacks.want(state.file, wanted);
      this.drawPeak(state, lane, view);
      this.hatchUnloaded(picture, view);
      base.unclip();
    }
    if (state.layout === 'address') {
      if (this.shown !== null) drawSpaceNames(base, this.shown.picture, view, theme);
      drawPositions(base, state.axis, areas.axis, view, theme);
    } else {
      drawAxes(base, state.axis, areas, view, theme);
    }
    base.line(areas.plot.left, areas.axis.top, areas.plot.left + areas.plot.width, areas.axis.top, theme.muted, []);
    drawInstants(base, instantsOf(file, state.axis, notesOf(state, file)), areas, view, theme);
  }

  private drawPeak(state: State, lane: LaneMeta, view: Viewport): void {
    const position = this.props.navigator.positionOf(lane.peak_event);
    if (position === null || position < view.from || position > view.to || lane.peak_bytes === 0) return;
    const x = xOf(view, position);
    const y = state.layout === 'address' ? view.box.top + 10 : Math.max(view.box.top + 10, yOf(view, lane.peak_bytes));
    const isLeft = x > view.box.left + view.box.width - 130;
    this.base.line(x, y - 8, x, y + 6, this.theme.fg, []);
    this.base.triangle(x, y - 8, 4, this.theme.fg);
    const words = `peak ${formatBytes(lane.peak_bytes)}`;
    const width = words.length * 6.2 + 6;
    // In the layout by address the label is over blocks of any colour.
    if (state.layout === 'address') this.base.rect({ left: isLeft ? x - 5 - width : x + 5, top: y - 11, width, height: 14 }, this.theme.bg);
    this.base.text(words, x + (isLeft ? -8 : 8), y - 4, this.theme.fg, isLeft ? 'right' : 'left');
  }

  // Hatches the areas beside the tile, which are on their way.
  private hatchUnloaded({ curve }: Picture, view: Viewport): void {
    const { box } = view;
    const [x0, x1] = [xOf(view, curve.window.from), xOf(view, curve.window.to)];
    const domain = this.props.navigator.domain();
    if (x0 > box.left + 1 && curve.window.from > domain.from) this.base.hatch({ ...box, width: Math.min(box.width, x0 - box.left) }, this.theme.line);
    const right = box.left + box.width;
    if (x1 < right - 1 && curve.window.to < domain.to) this.base.hatch({ ...box, left: Math.max(box.left, x1), width: right - Math.max(box.left, x1) }, this.theme.line);
  }

  private drawOverlay(state: State, areas: Areas, view: Viewport): void {
    const { overlay, theme } = this;
    const { plot } = areas;
    overlay.begin(this.size.width, this.size.height, '');
    const whole: Box = { left: plot.left, top: areas.instants.top, width: plot.width, height: plot.top + plot.height - areas.instants.top };
    overlay.clip(whole);
    this.drawSelection(state, view);
    drawComparedRanges(overlay, theme, state, view, (event) => this.props.navigator.positionOf(event));
    this.drawMoment(state.base, view, whole, theme.warn, [4, 3]);
    this.drawMoment(cursorEvent(state), view, whole, theme.accent, state.cursor === null ? [2, 5] : []);
    if (this.hovered !== null && this.dragged === null) {
      overlay.line(this.hovered.x, (areas.samples ?? plot).top, this.hovered.x, plot.top + plot.height, theme.muted, [1, 3]);
      const rows = this.shown?.picture.blocks.row.length ?? 0;
      if (this.hovered.item !== null && this.hovered.item < rows) this.outlineItem(this.hovered.item, view, theme.fg, 1, 0);
    }
    this.drawDragged(view);
    overlay.unclip();
  }

  private drawMoment(event: number | null, view: Viewport, whole: Box, color: string, dash: readonly number[]): void {
    const position = event === null ? null : this.props.navigator.positionOf(event);
    if (position === null || position < view.from || position > view.to) return;
    const x = xOf(view, position);
    this.overlay.line(x, whole.top, x, whole.top + whole.height, color, dash);
  }

  private drawSelection(state: State, view: Viewport): void {
    const { selection } = state;
    const blocks = this.isCurrent() ? this.shown?.picture.blocks : undefined;
    if (selection.kind === 'range') {
      const [from, to] = [this.props.navigator.positionOf(selection.from), this.props.navigator.positionOf(selection.to)];
      const { box } = selection;
      const isDrawn = box !== null && box.axis === state.axis && box.layout === state.layout;
      if (from !== null && to !== null) outlineRange(this.overlay, this.theme, xOf(view, from), xOf(view, to), view, isDrawn ? [yOf(view, box.high), yOf(view, box.low)] : null);
    }
    if (blocks === undefined || (selection.kind !== 'block' && selection.kind !== 'stack')) return;
    for (let i = 0; i < blocks.row.length; ++i) {
      if (selection.kind === 'block' && blocks.row[i] === selection.row) this.outlineItem(i, view, this.theme.fg, 2, 0);
      // The blocks of a call site have a colour of their own.
      if (selection.kind === 'stack' && blocks.stack[i] === selection.stack && blocks.size[i]! > 0) this.outlineItem(i, view, this.theme.accent, 2, LOWEST_OUTLINED);
    }
  }

  // Fills what is lower than `filledBelow` pixels, because an outline would hide it anyway.
  private outlineItem(item: number, view: Viewport, color: string, width: number, filledBelow: number): void {
    const quads = this.shown?.picture.laidOut.quads;
    const begin = this.quadBegin;
    if (quads === undefined || begin === null || item + 1 >= begin.length) return;
    const [first, last] = [begin[item]!, begin[item + 1]!];
    for (let i = first; i < last; ++i) {
      const box = boxOf(view, quads.x0[i]!, quads.x1[i]!, quads.y0[i]!, quads.y1[i]!);
      if (box === null) continue;
      if (box.height < filledBelow) {
        this.overlay.rect(box, color);
        continue;
      }
      const right = box.left + box.width;
      const bottom = box.top + box.height;
      for (const y of [box.top, bottom - width]) this.overlay.rect({ left: box.left, top: y, width: box.width, height: width }, color);
      if (i === first) this.overlay.rect({ left: box.left, top: box.top, width, height: box.height }, color);
      if (i === last - 1) this.overlay.rect({ left: right - width, top: box.top, width, height: box.height }, color);
    }
  }

  private drawDragged(view: Viewport): void {
    const { dragged } = this;
    if (dragged === null) return;
    const [left, right] = [Math.min(dragged.x0, dragged.x1), Math.max(dragged.x0, dragged.x1)];
    const [top, bottom] = [Math.min(dragged.y0, dragged.y1), Math.max(dragged.y0, dragged.y1)];
    const { box } = view;
    if (dragged.kind === 'measure') outlineRange(this.overlay, this.theme, left, right, view, null);
    else if (dragged.kind === 'band') outlineRange(this.overlay, this.theme, box.left, box.left + box.width, view, [top, bottom]);
    else if (dragged.kind === 'select') outlineRange(this.overlay, this.theme, left, right, view, [top, bottom]);
    else this.overlay.outline({ left, top, width: right - left, height: bottom - top }, this.theme.accent, 1.5);
  }
}

function nextFrame(): Promise<void> {
  return new Promise((resolve) => requestAnimationFrame(() => resolve()));
}

// Progress alone is reported several times a second in a live recording, and is shown elsewhere.
function isProgressAlone(state: State, old: State): boolean {
  if (state.progress === old.progress || stageOf(state) !== stageOf(old)) return false;
  return (Object.keys(state) as (keyof State)[]).every((name) => name === 'progress' || state[name] === old[name]);
}

function needsPicture(state: State, old: State): boolean {
  return state.cursor === old.cursor && state.base === old.base && state.selection === old.selection && state.rangeA === old.rangeA
    ? true
    : state.range !== old.range || state.band !== old.band || state.filter !== old.filter || state.whatif !== old.whatif || state.colorBy !== old.colorBy;
}
