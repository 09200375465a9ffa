// An overview of the whole recording with the range that all views but the lanes share, above which
// it is therefore not visible. Drag the range, or drag out a new one. It also loads the curves that
// translate between the axes, whichever view is shown.

import type { TargetedPointerEvent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { formatBytes } from '../../base/format_bytes';
import type { CurveTile } from '../../data/protocol';
import { Canvas2dRenderer } from '../../render/canvas2d_renderer';
import { mix } from '../../render/palette';
import { positionAt, xOf, type Renderer, type Viewport } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import { stageOf } from '../../state/live';
import { domainOf, type Navigator, type Range } from '../../state/navigator';
import { fileOf, laneOf } from '../../state/scope';
import { useCanvas } from '../../widgets/use_canvas';
import { keyOf, useQuestion } from '../../widgets/use_question';
import type { ViewProps } from '../view';

const COLUMNS = 2048;
const HEIGHT = 20;
const EDGE = 10; // px beside the curve, so that a narrow range at an end can be grabbed

export function Minimap({ state, source, navigator }: ViewProps) {
  const file = fileOf(state)!;
  const lane = laneOf(state)!;
  const domain = domainOf(file, state.axis);
  const stage = stageOf(state);
  const window = { file: state.file, lane: state.lane, axis: state.axis, ...domain, columns: COLUMNS };
  const asked = useQuestion(keyOf(window, stage), (signal) => source.curve(window, signal));
  const curve = asked.answer !== null && asked.answer.window.lane === state.lane && asked.answer.window.axis === state.axis ? asked.answer : null;
  useEffect(() => {
    if (curve !== null) navigator.learn(curve);
  }, [curve]);

  const viewOf = (width: number): Viewport => ({ ...domain, low: 0, high: Math.max(1, lane.peak_bytes), box: { left: EDGE, top: 2, width: Math.max(1, width - 2 * EDGE), height: HEIGHT - 4 } });
  const renderer = useRef<Canvas2dRenderer | null>(null);
  const { canvas, size } = useCanvas(
    (context, { width }, theme) => {
      renderer.current ??= new Canvas2dRenderer(context.canvas, () => theme.font);
      draw(renderer.current, curve, viewOf(width), state.range, width, theme);
    },
    [curve, state.range],
  );
  return (
    <canvas
      ref={canvas} class="minimap" role="img" style={{ height: `${HEIGHT}px`, ...(state.view === 'lanes' || state.view === 'ranks' ? { display: 'none' } : {}) }}
      aria-label={`Overview of the whole recording, peak ${formatBytes(lane.peak_bytes)}. Keys W, S, A and D change the window.`}
      {...useRangeDrag(viewOf(size.width), state.range, navigator)}
      onDblClick={() => navigator.fit()}
    />
  );
}

interface Drag {
  readonly kind: 'move' | 'draw';
  readonly at: number; // position where it began
  readonly range: Range; // before it
}

/** Returns the listeners by which a drag inside the range moves it, and another one draws it anew. */
function useRangeDrag(view: Viewport, range: Range, navigator: Navigator) {
  const drag = useRef<Drag | null>(null);
  const stop = (): void => void (drag.current = null);
  return {
    onPointerDown: (event: TargetedPointerEvent<HTMLCanvasElement>): void => {
      event.currentTarget.setPointerCapture(event.pointerId);
      const at = positionAt(view, event.offsetX);
      const isInside = at >= range.from && at <= range.to && !navigator.isWhole();
      drag.current = { kind: isInside ? 'move' : 'draw', at, range };
    },
    onPointerMove: (event: PointerEvent): void => {
      if (drag.current === null) return;
      const { kind, at, range: before } = drag.current;
      const position = positionAt(view, event.offsetX);
      if (kind === 'move') navigator.setRange({ from: before.from + position - at, to: before.to + position - at });
      else if (Math.abs(xOf(view, position) - xOf(view, at)) > 4) navigator.setRange({ from: Math.min(at, position), to: Math.max(at, position) });
    },
    onPointerUp: stop,
    onPointerCancel: stop,
  };
}

function draw(renderer: Renderer, curve: CurveTile | null, view: Viewport, range: Range, width: number, theme: Theme): void {
  renderer.begin(width, HEIGHT, theme.panel);
  const live = curve?.series.get('live');
  if (curve !== null && live !== undefined) {
    renderer.area(curve.window.from, curve.window.to, live.max, view, mix(theme.accent, theme.panel, 0.55));
  }
  const { box } = view;
  const [x0, x1] = [xOf(view, range.from), xOf(view, range.to)];
  const veil = `${theme.bg}b0`;
  renderer.rect({ left: box.left, top: 0, width: Math.max(0, x0 - box.left), height: HEIGHT }, veil);
  renderer.rect({ left: x1, top: 0, width: Math.max(0, box.left + box.width - x1), height: HEIGHT }, veil);
  renderer.outline({ left: x0, top: 1, width: Math.max(2, x1 - x0), height: HEIGHT - 2 }, theme.accent, 1.5);
}
