// Several lanes at once on one axis: recordings, such as the ranks of a job, and the devices and
// heaps of each.

import { useMemo, useRef, useState } from 'preact/hooks';
import { activity } from '../../base/activity';
import { formatDuration } from '../../base/format_time';
import { columnAt } from '../../data/columns';
import type { CurveTile } from '../../data/protocol';
import { Canvas2dRenderer } from '../../render/canvas2d_renderer';
import { momentKey, stageOf } from '../../state/live';
import { clampRange, eventOf, positionOnAxis, roundedRange, zoomed, type Range } from '../../state/navigator';
import { cursorEvent, fileOf, titleOfFile } from '../../state/scope';
import { INITIAL_STATE, type LanesOptions, type State } from '../../state/state';
import { Choice } from '../../widgets/choice';
import { Empty } from '../../widgets/states';
import { Unfiltered } from '../../widgets/unfiltered';
import { useCanvas } from '../../widgets/use_canvas';
import { useCommands } from '../../widgets/use_commands';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { drawPositions } from '../timeline/draw_plot';
import type { View, ViewProps } from '../view';
import { plotBox } from './draw_lane';
import { alignmentsOf, laneAxis, momentWords, type LaneAxis } from './lane_axis';
import { LaneChooser } from './lane_chooser';
import { arrangedLanes, heapTitle, movedLane, toggledName, withShown, type LaneEntry } from './lane_list';
import { LaneRow, usePlotWidth, type Shared } from './lane_row';
import { lanesCommands } from './lanes_commands';

const RULER = 22; // px

function LanesView(props: ViewProps) {
  const { state, store, source, commands, announce } = props;
  const { lanes: options } = state;
  const files = state.meta?.files ?? [];
  const loaded = useMemo(() => files.filter((file) => file.lanes.length > 0), [state.meta]);
  const axis = useMemo(() => laneAxis(loaded, options.align), [loaded, options.align]);
  const lanes = arrangedLanes(files, options);
  const rangeOf = ({ lanesRange }: State): Range => (lanesRange === null ? axis.domain : clampRange(movedBy(lanesRange, axis.base), axis.domain, axis.axis));
  const range = rangeOf(state);
  const { element, width } = usePlotWidth();
  const [pointer, setPointer] = useState<number | null>(null);
  const cursor = useCursorPosition(props, axis);

  const change = (changed: Partial<LanesOptions>): void => store.update((old) => ({ lanes: { ...old.lanes, ...changed } }));
  const setRange = (wanted: Range): void => {
    const next = roundedRange(clampRange(wanted, axis.domain, axis.axis));
    const isAll = next.from <= axis.domain.from && next.to >= axis.domain.to;
    store.update({ lanesRange: isAll ? null : movedBy(next, -axis.base) });
  };
  const fit = (): void => store.update({ lanesRange: null });
  // Positions on another axis mean other moments.
  const align = (to: LanesOptions['align']): void => store.update((old) => ({ lanes: { ...old.lanes, align: to }, lanesRange: null, lanesCursor: null }));
  // Turns of the wheel may come faster than the page is rendered.
  const zoom = (factor: number, at: number): void => setRange(zoomed(rangeOf(store.get()), factor, at));
  const alignments = alignmentsOf(loaded);
  useCommands(commands, lanesCommands({
    zoom: (factor) => zoom(factor, cursor !== null && cursor >= range.from && cursor <= range.to ? cursor : (range.from + range.to) / 2),
    pan: (share) => setRange({ from: range.from + share * (range.to - range.from), to: range.to + share * (range.to - range.from) }),
    fit,
    align: () => {
      const possible = alignments.filter(([, , why]) => why === '').map(([each]) => each);
      align(possible[(possible.indexOf(axis.align) + 1) % possible.length]!);
    },
  }));

  const position = pointer ?? cursor;
  const shared: Shared = {
    source, axis, range, width,
    moment: position === null ? null : { position, isPointer: pointer !== null },
    onPoint: setPointer, onRange: setRange, onZoom: zoom, onFit: fit,
  };
  const resolution = (range.to - range.from) / Math.max(1, width);
  const tops = topsOf([...lanes.pinned, ...lanes.others]);
  const dragged = useRef<string | null>(null);
  const move = (entry: LaneEntry, by: number): void => {
    change({ order: movedLane(lanes, entry.id, by) });
    announce(`Moved ${nameOf(entry)} ${by < 0 ? 'up' : 'down'}`);
  };
  const rowsOf = (part: readonly LaneEntry[], isPinned: boolean) => part.map((entry, i) => (
    <li
      key={entry.id} class={entry.lane === null ? 'lane without' : 'lane'} aria-label={nameOf(entry)}
      aria-current={entry.file.file === state.file && entry.lane?.lane === state.lane ? 'true' : undefined}
      onDragOver={(event) => {
        if (part.some(({ id }) => id === dragged.current)) event.preventDefault();
      }}
      onDrop={(event) => {
        const from = part.findIndex(({ id }) => id === dragged.current);
        if (from < 0) return;
        event.preventDefault();
        move(part[from]!, i - from);
      }}
    >
      <LaneRow
        entry={entry} shared={shared} stage={stageOf({ ...state, file: entry.file.file })}
        progress={state.progress?.files.find(({ file }) => file === entry.file.file) ?? null}
        top={entry.lane === null ? 1 : tops.get(heapTitle(entry.lane))!}
        isSelected={entry.file.file === state.file && entry.lane?.lane === state.lane}
        onSelect={(tile, at) => select(props, entry, axis, tile, at)}
        onOpen={(tile, own) => open(props, entry, tile, state.lanesRange === null ? null : own)}
        onDrag={(isHeld) => (dragged.current = isHeld ? entry.id : null)}
        buttons={
          <>
            <button type="button" aria-pressed={isPinned} aria-label={`Pin ${nameOf(entry)}`} title="Keep above the others" onClick={() => change({ pinned: toggledName(options.pinned, entry.id) })}>Pin</button>
            <button type="button" aria-label={`Move ${nameOf(entry)} up`} title="Move up" disabled={i === 0} onClick={() => move(entry, -1)}>↑</button>
            <button type="button" aria-label={`Move ${nameOf(entry)} down`} title="Move down" disabled={i === part.length - 1} onClick={() => move(entry, 1)}>↓</button>
            <button type="button" aria-label={`Hide ${nameOf(entry)}`} title="Hide" onClick={() => change({ toggled: withShown(files, options, [entry.id], false) })}>×</button>
          </>
        }
      />
    </li>
  ));
  return (
    <section class="view lanes-view" aria-label="Lanes">
      <div class="bar">
        <Choice label="Align" value={axis.align} options={alignments} onChoose={align} />
        <LaneChooser files={files} options={options} onChange={change} />
        <button type="button" disabled={state.lanesRange === null} onClick={fit}>Show all</button>
        <output class="lanes-moment">{momentLine(axis, position, pointer !== null, resolution)}</output>
      </div>
      <Unfiltered state={state} store={store} words="Lanes show all memory, regardless of the filter." />
      <div class="lanes-scroll">
        <div class="lanes-top">
          <div class="lanes-ruler">
            <span class="muted">{AXIS_WORDS[axis.align]}</span>
            <div ref={element}><Ruler axis={axis} range={range} /></div>
          </div>
          {lanes.pinned.length > 0 && <ol class="lanes" aria-label="Pinned lanes">{rowsOf(lanes.pinned, true)}</ol>}
        </div>
        {lanes.others.length > 0 && <ol class="lanes" aria-label="Lanes">{rowsOf(lanes.others, false)}</ol>}
        {lanes.pinned.length + lanes.others.length === 0 && (
          <Empty title="All lanes are hidden."><button type="button" onClick={() => change(INITIAL_STATE.lanes)}>Show the usual lanes</button></Empty>
        )}
      </div>
    </section>
  );
}

const AXIS_WORDS = { clock: 'since the first began', start: 'since the beginning', step: 'steps' } as const;

function movedBy({ from, to }: Range, by: number): Range {
  return { from: from + by, to: to + by };
}

function nameOf({ file, lane }: LaneEntry): string {
  return lane === null ? titleOfFile(file) : `${titleOfFile(file)}, ${lane.label}`;
}

/** Lanes of the same kind of memory have the same scale, so that their heights can be compared. */
function topsOf(entries: readonly LaneEntry[]): ReadonlyMap<string, number> {
  const tops = new Map<string, number>();
  for (const { lane } of entries) {
    if (lane !== null) tops.set(heapTitle(lane), Math.max(1024, tops.get(heapTitle(lane)) ?? 0, lane.peak_bytes * 1.04));
  }
  return tops;
}

function momentLine(axis: LaneAxis, position: number | null, isPointer: boolean, resolution: number): string {
  if (position === null) return '';
  const width = axis.axis === 'time' ? formatDuration(resolution) : `${resolution.toPrecision(2)} steps`;
  return isPointer ? `${momentWords(axis, position, resolution)}: the most within ${width}` : `${momentWords(axis, position, resolution)}: the cursor`;
}

/** Returns the position of the cursor on the common axis; null if it is not known or not on it. */
function useCursorPosition({ state, source }: ViewProps, axis: LaneAxis): number | null {
  const file = fileOf(state)!;
  const event = cursorEvent(state);
  const window = { file: state.file, lane: state.lane, axis: 'event', from: event, to: event + 1, columns: 1 } as const;
  const key = keyOf(state.file, state.lane, momentKey(state, event));
  const { answer } = useQuestion(key, (signal) => source.curve(window, signal));
  const shift = axis.shiftOf(file);
  const { lanesCursor: clicked } = state;
  if (clicked !== null && clicked.event === state.cursor) return clicked.position + axis.base;
  if (answer === null || shift === null || answer.window.file !== state.file) return null;
  return positionOnAxis(file, axis.axis, answer.window.from, answer.ns[0]!) + shift;
}

/** Selects the recording, the lane and the moment that was clicked, for all views. */
function select(props: ViewProps, entry: LaneEntry, axis: LaneAxis, tile: CurveTile, position: number): void {
  showLane(props, entry);
  const column = columnAt(tile.window, position - axis.shiftOf(entry.file)!);
  const isRecorded = !Number.isNaN(tile.series.get('live')?.max[column] ?? NaN);
  const event = tile.peak[column]!;
  const at = { event, position: Number((position - axis.base).toFixed(axis.axis === 'time' ? 0 : 6)) };
  const isSelected = props.store.get().selection.kind !== 'none';
  // What does not change is left out: it would be a step of the browser's history.
  props.store.update({ ...(isSelected ? { selection: { kind: 'none' } } : {}), ...(isRecorded ? { lanesCursor: at } : {}) });
  if (isRecorded) void activity.track(props.navigator.showEvent(event));
}

/**
 * Opens the lane on the timeline. `own`: the range that is shown here, on the recording's own axis;
 * null: all.
 */
function open(props: ViewProps, entry: LaneEntry, tile: CurveTile | null, own: Range | null): void {
  showLane(props, entry, { view: 'timeline' });
  if (tile === null || own === null) return;
  const [from, to] = [eventOf(tile, own.from), eventOf(tile, own.to)];
  if (from < to) void activity.track(props.navigator.showEvents(from, to));
}

function showLane({ navigator, state, store }: ViewProps, { file, lane }: LaneEntry, more: Partial<State> = {}): void {
  if (lane !== null && (file.file !== state.file || lane.lane !== state.lane)) navigator.showLane(file.file, lane.lane, more);
  else store.update(more);
}

function Ruler({ axis, range }: { readonly axis: LaneAxis; readonly range: Range }) {
  const renderer = useRef<Canvas2dRenderer | null>(null);
  const { canvas } = useCanvas(
    (context, { width }, theme) => {
      renderer.current ??= new Canvas2dRenderer(context.canvas, () => theme.font);
      renderer.current.begin(width, RULER, '');
      const box = { ...plotBox(width, RULER), top: 0 };
      drawPositions(renderer.current, axis.axis, box, { ...range, low: 0, high: 1, box }, theme);
    },
    [axis, range.from, range.to],
  );
  return <canvas ref={canvas} class="ruler" style={{ height: `${RULER}px` }} aria-hidden="true" />;
}

export const LANES_VIEW: View = { title: 'Lanes', component: LanesView };
