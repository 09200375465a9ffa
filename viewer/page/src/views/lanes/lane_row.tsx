// One lane: what it is, the bytes at the moment that is looked at, and its picture.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatBytes, formatCount } from '../../base/format_bytes';
import { columnAt } from '../../data/columns';
import type { DataSource } from '../../data/data_source';
import type { CurveTile, FileProgress, LaneMeta } from '../../data/protocol';
import { Canvas2dRenderer } from '../../render/canvas2d_renderer';
import { positionAt, type Viewport } from '../../render/renderer';
import type { Range } from '../../state/navigator';
import { titleOfFile } from '../../state/scope';
import { useCanvas } from '../../widgets/use_canvas';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { CLICK_PIXELS, turnOf } from '../timeline/pointer';
import { covers, pixelsOf, wantedTile, type TileWindow, type VisibleArea } from '../timeline/wanted';
import { drawLane, GUTTER, MARGIN, plotBox } from './draw_lane';
import type { LaneAxis } from './lane_axis';
import type { LaneEntry } from './lane_list';

/** What the lanes have in common. */
export interface Shared {
  readonly source: DataSource;
  readonly axis: LaneAxis;
  readonly range: Range; // shown, on the common axis
  readonly width: number; // how wide the plots are, in px
  /** The position that the readouts describe, and whether it is the pointer's; null: none. */
  readonly moment: { readonly position: number; readonly isPointer: boolean } | null;
  readonly onPoint: (position: number | null) => void;
  readonly onRange: (range: Range) => void;
  readonly onZoom: (factor: number, at: number) => void;
  readonly onFit: () => void;
}

interface LaneRowProps {
  readonly entry: LaneEntry;
  readonly shared: Shared;
  readonly stage: string; // how far the recordings are loaded
  readonly progress: FileProgress | null;
  readonly top: number; // bytes at the top of the plot
  readonly isSelected: boolean;
  readonly onSelect: (tile: CurveTile, position: number) => void;
  readonly onOpen: (tile: CurveTile | null, own: Range) => void; // the range on the recording's own axis
  readonly onDrag: (isHeld: boolean) => void; // to another place
  readonly buttons: ComponentChildren;
}

export function LaneRow(props: LaneRowProps) {
  const { entry, shared, isSelected, onOpen, onDrag, buttons } = props;
  const { range } = shared;
  const { file, lane } = entry;
  const shift = lane === null ? null : shared.axis.shiftOf(file);
  const asked = useLaneTile(props, shift ?? 0, shift !== null);
  const tile = asked.answer;
  const bytes = tile === null || shift === null || shared.moment === null ? NaN : bytesAt(tile, shared.moment.position - shift);
  return (
    <>
      <div class="lane-head" draggable title="Drag to reorder" onDragStart={() => onDrag(true)} onDragEnd={() => onDrag(false)}>
        <p class="lane-name">
          <button type="button" class="link" title={`Show on the timeline: ${file.path}`} disabled={lane === null} onClick={() => onOpen(tile, { from: range.from - (shift ?? 0), to: range.to - (shift ?? 0) })}>{titleOfFile(file)}</button>
        </p>
        {lane !== null && <p class="lane-label">{lane.label}</p>}
        <div class="lane-foot">
          {lane !== null && <p><output class="lane-bytes">{bytesWords(bytes, tile)}</output> <span class="muted">peak {formatBytes(lane.peak_bytes)}</span></p>}
          <span class="lane-buttons">{buttons}</span>
        </div>
      </div>
      {lane === null || shift === null ? (
        <p class="lane-without">{withoutPicture(props, lane)}</p>
      ) : (
        <LanePlot {...props} lane={lane} shift={shift} tile={tile} bytes={bytes} isSelected={isSelected} failure={asked.failure} />
      )}
      {file.lacks.length > 0 && <p class="lane-lacks lacks" title={file.lacks.join('\n')}>{file.lacks[0]}</p>}
    </>
  );
}

function withoutPicture({ progress }: LaneRowProps, lane: LaneMeta | null): string {
  if (lane !== null) return 'No steps were found in this recording.';
  if (progress?.state === 'failed') return progress.error;
  if (progress?.state === 'waiting') return 'Of many recordings, only the first are loaded. Choose this one at the top of the page to load it.';
  return progress === null || progress.state === 'ready' ? 'No memory was allocated in this recording.' : `${progress.what} (${Math.round(100 * progress.fraction)} %)`;
}

// Tiles are wider than what is shown, so that most moves of the range need no new one.
function useLaneTile({ entry: { file, lane }, shared: { source, axis, range, width }, stage }: LaneRowProps, shift: number, isOnAxis: boolean) {
  const own = ({ from, to }: Range): Range => ({ from: from - shift, to: to - shift });
  const visible: VisibleArea = { range: own(range), domain: own(axis.domain), width: pixelsOf(width), low: 0, high: 1, top: 1, height: 1 };
  const last = useRef<{ readonly axis: LaneAxis['axis']; readonly tile: TileWindow } | null>(null);
  if (last.current === null || last.current.axis !== axis.axis || !covers(last.current.tile, visible)) {
    last.current = { axis: axis.axis, tile: wantedTile(visible) };
  }
  const { from, to, columns } = last.current.tile;
  const window = { file: file.file, lane: lane?.lane ?? 0, axis: axis.axis, from, to, columns };
  const asked = useQuestion(isOnAxis && width > 0 ? keyOf(window, stage) : null, (signal) => source.curve(window, signal));
  return asked.answer?.window.axis === axis.axis ? asked : { ...asked, answer: null };
}

/** Returns the bytes drawn at a position, the most of its column; NaN if they are unknown. */
function bytesAt(tile: CurveTile, position: number): number {
  const { from, to } = tile.window;
  const live = tile.series.get('live');
  return live === undefined || position < from || position >= to ? NaN : live.max[columnAt(tile.window, position)]!;
}

interface LanePlotProps extends LaneRowProps {
  readonly lane: LaneMeta;
  readonly shift: number;
  readonly tile: CurveTile | null;
  readonly bytes: number;
  readonly failure: string;
}

function LanePlot(props: LanePlotProps) {
  const { entry: { file }, lane, shared, shift, tile, bytes, top, isSelected, failure } = props;
  const { axis, range, moment } = shared;
  const viewOf = (width: number, height: number): Viewport => ({ ...range, low: 0, high: top, box: plotBox(width, height) });
  const renderer = useRef<Canvas2dRenderer | null>(null);
  const { canvas, size } = useCanvas(
    (context, { width, height }, theme) => {
      renderer.current ??= new Canvas2dRenderer(context.canvas, () => theme.font);
      renderer.current.begin(width, height, '');
      drawLane(renderer.current, { file, axis, shift, tile, isSelected }, viewOf(width, height), theme);
    },
    [file, axis, range.from, range.to, tile, top, isSelected],
  );
  const label = `${titleOfFile(file)}, ${lane.label}: peak ${formatBytes(lane.peak_bytes)} after event ${formatCount(lane.peak_event)}, ${formatBytes(lane.end_bytes)} at the end`;
  return (
    <div class="lane-plot">
      <canvas ref={canvas} role="img" aria-label={label} {...useLanePointer(viewOf(size.width, size.height), props)} />
      {moment !== null && <MomentLine share={(moment.position - range.from) / (range.to - range.from)} words={moment.isPointer ? bytesWords(bytes, tile) : null} />}
      {failure !== '' && <p class="lane-without" role="alert">{failure}</p>}
    </div>
  );
}

function bytesWords(bytes: number, tile: CurveTile | null): string {
  return !Number.isNaN(bytes) ? formatBytes(bytes) : tile === null ? '…' : 'not recorded';
}

/** `words`: shown beside the line; null: none, because it is the cursor. */
function MomentLine({ share, words }: { readonly share: number; readonly words: string | null }) {
  if (share < 0 || share > 1) return null;
  const left = `calc(${GUTTER}px + (100% - ${GUTTER + MARGIN}px) * ${share})`;
  const side = words === null ? 'cursor' : share > 0.85 ? 'pointer left' : 'pointer';
  return <span class={`lane-moment ${side}`} style={{ left }} aria-hidden="true">{words !== null && <b>{words}</b>}</span>;
}

/**
 * Returns the listeners of a plot: the pointer shows a moment, a click selects it, a drag moves the
 * range, the wheel zooms.
 */
function useLanePointer(view: Viewport, { shared, tile, onSelect }: LanePlotProps) {
  const drag = useRef<{ readonly x: number; readonly range: Range; isMoving: boolean } | null>(null);
  const { onPoint, onRange, onZoom, onFit, range } = shared;
  const positionOf = (event: MouseEvent): number => positionAt(view, Math.min(Math.max(event.offsetX, view.box.left), view.box.left + view.box.width));
  return {
    onPointerDown: (event: PointerEvent): void => {
      if (event.button !== 0) return;
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      drag.current = { x: event.offsetX, range, isMoving: false };
    },
    onPointerMove: (event: PointerEvent): void => {
      const held = drag.current;
      if (held === null) {
        onPoint(positionOf(event));
        return;
      }
      held.isMoving ||= Math.abs(event.offsetX - held.x) >= CLICK_PIXELS;
      if (!held.isMoving) return;
      const by = ((event.offsetX - held.x) / view.box.width) * (held.range.to - held.range.from);
      onRange({ from: held.range.from - by, to: held.range.to - by });
    },
    onPointerUp: (event: PointerEvent): void => {
      if (drag.current?.isMoving === false && tile !== null) onSelect(tile, positionOf(event));
      drag.current = null;
    },
    onPointerCancel: (): void => void (drag.current = null),
    onPointerLeave: (): void => {
      if (drag.current === null) onPoint(null);
    },
    onDblClick: onFit,
    onWheel: (event: WheelEvent): void => {
      event.preventDefault();
      const { sideways, factor } = turnOf(event);
      const by = (sideways / view.box.width) * (range.to - range.from);
      if (sideways !== 0) onRange({ from: range.from + by, to: range.to + by });
      else onZoom(factor, positionOf(event));
    },
  };
}

/** Returns the width of an element's plots in px, also after it has changed. */
export function usePlotWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(0, Math.round(entry!.contentRect.width) - GUTTER - MARGIN)));
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return { element, width };
}
