// An overview of the whole recording with the range that all views share. Drag the range, or drag
// out a new one. It also loads the curves that translate between the axes, whichever view is shown.

import { useEffect, useRef, useState } from 'preact/hooks';
import { formatBytes } from '../../base/format_bytes';
import type { CurveTile } from '../../data/protocol';
import { Canvas2dRenderer } from '../../render/canvas2d_renderer';
import { mix } from '../../render/palette';
import { positionAt, xOf, type Renderer, type Viewport } from '../../render/renderer';
import { readTheme, type Theme } from '../../render/theme';
import { stageOf } from '../../state/live';
import { domainOf, type Range } from '../../state/navigator';
import { fileOf, laneOf } from '../../state/scope';
import { keyOf, useQuestion } from '../../widgets/use_question';
import type { ViewProps } from '../view';

const COLUMNS = 2048;
const HEIGHT = 38;
const EDGE = 10; // px beside the curve, so that a narrow range at an end can be grabbed

export function Minimap({ state, source, navigator }: ViewProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const file = fileOf(state)!;
  const lane = laneOf(state)!;
  const domain = domainOf(file, state.axis);
  const stage = stageOf(state);
  const window = { file: state.file, lane: state.lane, axis: state.axis, ...domain, columns: COLUMNS };
  const asked = useQuestion(keyOf(window, stage), (signal) => source.curve(window, signal));
  const curve = asked.answer !== null && asked.answer.window.lane === state.lane && asked.answer.window.axis === state.axis ? asked.answer : null;
  const [width, setWidth] = useState(0);
  const drag = useRef<{ readonly kind: 'move' | 'draw'; readonly at: number; readonly from: number; readonly to: number } | null>(null);
  const view = (): Viewport => ({ from: domain.from, to: domain.to, low: 0, high: Math.max(1, lane.peak_bytes), box: { left: EDGE, top: 2, width: Math.max(1, width - 2 * EDGE), height: HEIGHT - 4 } });

  useEffect(() => {
    if (curve !== null) navigator.learn(curve);
  }, [curve]);
  useEffect(() => {
    const resize = new ResizeObserver(() => setWidth(canvas.current?.clientWidth ?? 0));
    resize.observe(canvas.current!);
    return () => resize.disconnect();
  }, []);
  const [scheme, setScheme] = useState(0);
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme: dark)');
    const change = (): void => setScheme((old) => old + 1);
    media.addEventListener('change', change);
    return () => media.removeEventListener('change', change);
  }, []);
  const [theme, setTheme] = useState<Theme | null>(null);
  useEffect(() => setTheme(readTheme(canvas.current!.parentElement!)), [state.theme, scheme]);
  const renderer = useRef<Canvas2dRenderer | null>(null);
  useEffect(() => {
    if (canvas.current === null || theme === null || width === 0) return;
    renderer.current ??= new Canvas2dRenderer(canvas.current, () => theme.font);
    draw(renderer.current, curve, view(), state.range, width, theme);
  }, [curve, width, state.range, theme]);

  const at = (event: PointerEvent): number => positionAt(view(), event.clientX - canvas.current!.getBoundingClientRect().left);
  const onPointerDown = (event: PointerEvent): void => {
    canvas.current!.setPointerCapture(event.pointerId);
    const position = at(event);
    const { from, to } = state.range;
    const isInside = position >= from && position <= to && !navigator.isWhole();
    drag.current = { kind: isInside ? 'move' : 'draw', at: position, from, to };
  };
  const onPointerMove = (event: PointerEvent): void => {
    const held = drag.current;
    if (held === null) return;
    const position = at(event);
    if (held.kind === 'move') navigator.setRange({ from: held.from + position - held.at, to: held.to + position - held.at });
    else if (Math.abs(xOf(view(), position) - xOf(view(), held.at)) > 4) navigator.setRange({ from: Math.min(held.at, position), to: Math.max(held.at, position) });
  };
  return (
    <canvas
      ref={canvas} class="minimap" role="img" style={{ height: `${HEIGHT}px` }}
      aria-label={`Overview of the whole recording, peak ${formatBytes(lane.peak_bytes)}. Keys W, S, A and D change the window.`}
      onPointerDown={onPointerDown} onPointerMove={onPointerMove}
      onPointerUp={() => (drag.current = null)} onPointerCancel={() => (drag.current = null)}
      onDblClick={() => navigator.fit()}
    />
  );
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
