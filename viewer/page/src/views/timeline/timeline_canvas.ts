// The two canvases of the timeline: the picture, redrawn when its content changes, and an overlay
// that follows pointer and cursor. A frame draws what is loaded; it never waits for data.

import { activity, urgent } from '../../base/activity';
import { columnAt } from '../../data/columns';
import { StackCache } from '../../data/stack_cache';
import type { FileMeta, LaneMeta, PassingCurve, PredictedCurve, SpanMeta } from '../../data/protocol';
import { Canvas2dRenderer } from '../../render/canvas2d_renderer';
import { quadsOfItems, sortByColor, type ColoredQuads } from '../../render/quads';
import { isInside, positionAt, valueAt, type Box, type Viewport } from '../../render/renderer';
import { SiteColors } from '../../render/site_colors';
import { readTheme, type Theme } from '../../render/theme';
import { liveOf, stageOf, windowOf } from '../../state/live';
import { domainOf } from '../../state/navigator';
import { notesOf } from '../../state/notes';
import { fileOf, laneOf } from '../../state/scope';
import type { State } from '../../state/state';
import type { ViewProps } from '../view';
import { areasOf, type Areas } from './areas';
import { colorItems, siteLegend, topSites, type Coloring } from './coloring';
import { fittedTop, topOf } from './fitted_top';
import { Overlay, type Dragged, type DrawnBlocks } from './draw_overlay';
import { drawAddress, drawAxes, drawLabels, drawPassing, drawPeak, drawPositions, drawPredicted, drawSamples, drawSpaceNames, drawStacked, hatchUnloaded, stacksOf } from './draw_plot';
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

export interface Hover {
  readonly x: number;
  readonly y: number;
  readonly position: number;
  readonly value: number; // bytes or address; NaN outside of the plot
  readonly item: number | null;
  readonly instant: Instant | null;
  readonly span: SpanMeta | null; // a step, phase or range
}

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
      const peak = this.props.navigator.positionOf(lane.peak_event);
      if (peak !== null) drawPeak(base, state.layout, peak, lane.peak_bytes, view, theme);
      hatchUnloaded(base, picture.curve.window, this.props.navigator.domain(), view, theme);
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

  private drawnBlocks(): DrawnBlocks | null {
    if (this.shown === null || this.quadBegin === null) return null;
    const { blocks, laidOut } = this.shown.picture;
    return { blocks, quads: laidOut.quads, quadBegin: this.quadBegin };
  }

  private drawOverlay(state: State, areas: Areas, view: Viewport): void {
    const { overlay, theme } = this;
    const { plot } = areas;
    overlay.begin(this.size.width, this.size.height, '');
    const whole: Box = { left: plot.left, top: areas.instants.top, width: plot.width, height: plot.top + plot.height - areas.instants.top };
    overlay.clip(whole);
    const drawn = this.drawnBlocks();
    const over = new Overlay(overlay, theme, view, (event) => this.props.navigator.positionOf(event));
    over.drawSelection(state, this.isCurrent() ? drawn : null);
    over.drawMoments(state, whole);
    if (this.hovered !== null && this.dragged === null) {
      overlay.line(this.hovered.x, (areas.samples ?? plot).top, this.hovered.x, plot.top + plot.height, theme.muted, [1, 3]);
      if (this.hovered.item !== null && drawn !== null) over.outlineHovered(this.hovered.item, drawn);
    }
    if (this.dragged !== null) over.drawDragged(this.dragged);
    overlay.unclip();
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
