// The canvas of a flame graph, with its mouse and key handling.

import { useMemo, useState } from 'preact/hooks';
import { CanvasTree, type TreeItem } from '../../widgets/canvas_tree';
import { fitText } from '../../widgets/fit_text';
import { useCanvas } from '../../widgets/use_canvas';
import { frameColor } from './flame_colors';
import { ancestors, hit, layOut, MERGED, type FlameLayout, type WeighedTree } from './flame_layout';
import { amountWords, describe, frameLabel, type Matches } from './flame_words';

const ROW = 18; // px
const NARROWEST = 1; // px
const MAX_ROWS = 1200; // a higher canvas is not drawn; deeper frames are reached by zooming
const FONT = '12px system-ui, sans-serif';
const MAX_ITEMS = 24;

export interface FlameCanvasProps {
  readonly weighed: WeighedTree;
  readonly isGrowth: boolean;
  readonly icicle: boolean;
  readonly focus: number;
  readonly active: number;
  readonly matches: Matches | null;
  readonly categories: readonly string[] | null; // to colour by category
  readonly label: string;
  readonly onActive: (node: number) => void;
  readonly onFocus: (node: number) => void;
}

export function FlameCanvas(props: FlameCanvasProps) {
  const { weighed, focus, active, icicle } = props;
  const tree = weighed.tree;
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const hovered = pointed?.node ?? -1;
  const [width, setWidth] = useState(1000);
  const layout = useMemo(() => layOut(weighed, focus, NARROWEST / Math.max(1, width)), [weighed, focus, width]);
  const rows = Math.min(MAX_ROWS, layout.rowBegin.length - 1);
  const { canvas, size } = useCanvas(
    (context, { width: wide }) => {
      if (wide !== width) setWidth(wide);
      drawFlame(context, wide, layout, rows, props, hovered);
    },
    [layout, active, icicle, props.matches, props.isGrowth, props.categories, hovered],
  );

  const nodeAt = (event: MouseEvent): number => {
    const y = Math.floor(event.offsetY / ROW);
    const at = hit(layout, event.offsetX / Math.max(1, size.width), icicle ? y : rows - 1 - y);
    return at < 0 ? MERGED : layout.node[at]!;
  };
  const move = (node: number | undefined): void => {
    if (node !== undefined && node !== MERGED) props.onActive(node);
  };

  return (
    <CanvasTree
      class="flame"
      label={props.label}
      items={itemsAround(weighed, active, props.isGrowth)}
      active={`frame-${active}`}
      onKey={(event) => pressed(event.key, props, layout, move)}
    >
      <canvas
        ref={canvas}
        aria-hidden="true"
        style={{ height: `${rows * ROW}px` }}
        onMouseMove={(event) => setPointed({ node: nodeAt(event), x: event.clientX, y: event.clientY })}
        onMouseLeave={() => setPointed(null)}
        onClick={(event) => move(nodeAt(event))}
        onDblClick={(event) => {
          const node = nodeAt(event);
          if (node !== MERGED) props.onFocus(node);
        }}
      />
      {pointed !== null && hovered >= 0 && <FrameTooltip {...pointed} words={describe(tree, hovered, props.isGrowth, props.categories)} />}
    </CanvasTree>
  );
}

interface Pointed {
  readonly node: number;
  readonly x: number; // in the window
  readonly y: number;
}

function FrameTooltip({ x, y, words }: { readonly x: number; readonly y: number; readonly words: string }) {
  const side = x > window.innerWidth / 2 ? { right: `${window.innerWidth - x + 14}px` } : { left: `${x + 14}px` };
  const height = y > window.innerHeight / 2 ? { bottom: `${window.innerHeight - y + 14}px` } : { top: `${y + 14}px` };
  return <div class="tooltip in-window" aria-hidden="true" style={{ ...side, ...height }}>{words}</div>;
}

/** Moves to the frame, or zooms, as a key asks for. Returns false if the key has no meaning here. */
function pressed(key: string, { weighed, focus, active, icicle, onFocus }: FlameCanvasProps, layout: FlameLayout, move: (node: number | undefined) => void): boolean {
  const { parent } = weighed.tree;
  const [inward, outward] = icicle ? ['ArrowDown', 'ArrowUp'] : ['ArrowUp', 'ArrowDown'];
  if (key === inward) move(weighed.children[active]![0]);
  else if (key === outward) move(active === 0 ? 0 : parent[active]);
  else if (key === 'ArrowLeft' || key === 'ArrowRight') move(neighbour(layout, active, key));
  else if (key === 'Home') move(0);
  else if (key === 'Enter') onFocus(active);
  else if (key === 'Backspace' || (key === 'Escape' && focus !== 0)) onFocus(parent[focus]!);
  else return false;
  return true;
}

/**
 * Returns the next frame in the same row, or undefined at the row's end or if only merged frames
 * follow.
 */
function neighbour(layout: FlameLayout, node: number, key: 'ArrowLeft' | 'ArrowRight'): number | undefined {
  const at = layout.node.indexOf(node);
  if (at < 0) return undefined;
  const row = layout.rowBegin.findIndex((begin, r) => begin <= at && at < layout.rowBegin[r + 1]!);
  const step = key === 'ArrowLeft' ? -1 : 1;
  for (let i = at + step; i >= layout.rowBegin[row]! && i < layout.rowBegin[row + 1]!; i += step) {
    if (layout.node[i] !== MERGED) return layout.node[i];
  }
  return undefined;
}

function itemsAround(weighed: WeighedTree, active: number, isGrowth: boolean): TreeItem[] {
  const chain = ancestors(weighed.tree, active);
  const item = (node: number, level: number): TreeItem => ({
    id: `frame-${node}`,
    level,
    label: describe(weighed.tree, node, isGrowth),
    expanded: weighed.children[node]!.length === 0 ? undefined : chain.includes(node),
  });
  const below = weighed.children[active]!.slice(0, MAX_ITEMS);
  return [...chain.map((node, i) => item(node, i + 1)), ...below.map((node) => item(node, chain.length + 1))];
}

function drawFlame(
  context: CanvasRenderingContext2D,
  width: number,
  layout: FlameLayout,
  rows: number,
  { weighed, isGrowth, icicle, active, matches, categories }: FlameCanvasProps,
  hovered: number,
): void {
  context.font = FONT;
  context.textBaseline = 'middle';
  const widthOf = (text: string): number => context.measureText(text).width;
  for (let row = 0; row < rows; row++) {
    const y = (icicle ? row : rows - 1 - row) * ROW;
    for (let i = layout.rowBegin[row]!; i < layout.rowBegin[row + 1]!; i++) {
      const node = layout.node[i]!;
      const left = layout.left[i]! * width;
      // Leave a gap between frames unless that would make the frame invisible.
      const wide = Math.max(0.5, (layout.right[i]! - layout.left[i]!) * width - 0.5);
      const dimmed = matches !== null && (node === MERGED || matches.nodes[node] === 0);
      context.globalAlpha = dimmed ? 0.3 : 1;
      context.fillStyle = node === MERGED ? 'hsl(0 0% 70%)' : frameColor(weighed.tree, node, isGrowth, categories);
      context.fillRect(left, y, wide, ROW - 1);
      if (node === MERGED) continue;
      if (node === active || node === hovered) outline(context, left, y, wide, node === active);
      const label = frameLabel(weighed.tree, node);
      const amount = `  ${amountWords(weighed.tree, node, isGrowth)}`;
      const text = widthOf(label + amount) <= wide - 6 ? label + amount : fitText(label, wide - 6, widthOf);
      if (text === '') continue;
      context.fillStyle = '#000';
      context.fillText(text, left + 3, y + ROW / 2);
    }
  }
  context.globalAlpha = 1;
}

function outline(context: CanvasRenderingContext2D, left: number, y: number, wide: number, strong: boolean): void {
  context.globalAlpha = 1;
  context.strokeStyle = '#000';
  context.lineWidth = strong ? 2 : 1;
  context.strokeRect(left + 0.5, y + 0.5, Math.max(1, wide - 1), ROW - 2);
}
