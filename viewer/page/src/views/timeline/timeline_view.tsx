// The timeline: options on top, the canvases, the legend, and the same content as a table.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formatBytes, formatCount } from '../../base/format_bytes';
import { labelOf } from '../../data/stack_cache';
import { BLOCK_PENDING, NO_ROW, type FileMeta, type LaneMeta } from '../../data/protocol';
import { errorOfText } from '../../data/text_filter';
import type { Command } from '../../state/commands';
import { isFiltering } from '../../state/filter';
import { NOTHING_POINTED, type Pointed } from '../../state/breakdown_range';
import { axesOf } from '../../state/navigator';
import { fileOf, laneOf } from '../../state/scope';
import { Choice } from '../../widgets/choice';
import { Failed } from '../../widgets/states';
import { useLatest } from '../../widgets/use_latest';
import { useQuestion } from '../../widgets/use_question';
import { BreakdownPanel } from '../ranges/breakdown_panel';
import type { View, ViewProps } from '../view';
import { COLORINGS, lackOf } from './coloring';
import type { Dragged } from './draw_overlay';
import { askAtCursor, cursorKey, cursorQuery, filterWords } from './filter_curve';
import { Legend } from './legend';
import { largestBlock } from './largest_block';
import { brushOf, listenToPointer } from './pointer';
import { lackOfPrediction, predictionOptions, predictionWords } from './prediction';
import { readout } from './readout';
import { largestItem, ShownTable } from './shown_table';
import { TimelineCanvas, type Hover, type Shown } from './timeline_canvas';
import { timelineCommands } from './timeline_commands';
import { Tooltip } from './tooltip';

const AXES = { time: 'time', event: 'events', step: 'steps' } as const;

/** The canvases of the timeline with their listeners and commands, while the view is shown. */
function useTimelineCanvas(props: ViewProps, toggleTable: () => void) {
  const host = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const [timeline, setTimeline] = useState<TimelineCanvas | null>(null);
  const [shown, setShown] = useState<Shown | null>(null);
  const [failure, setFailure] = useState('');
  const [, setStacksKnown] = useState(0); // a change renders names that have come
  const [pointed, setPointed] = useState<{ readonly hover: Hover; readonly dragged: Dragged } | null>(null);
  const latest = useRef<Shown | null>(null);
  latest.current = shown;

  useEffect(() => {
    const made = new TimelineCanvas(host.current!, base.current!, overlay.current!, props, (next, why) => {
      setShown(next);
      setFailure(why);
    }, () => setStacksKnown((count) => count + 1));
    const rowOf = (item: number): number => latest.current?.picture.blocks.row[item] ?? NO_ROW;
    const stopPointer = listenToPointer(overlay.current!, made, props, (hover, dragged) => setPointed(hover === null ? null : { hover, dragged }), rowOf);
    const stopCommands = props.commands.register([...timelineCommands(props, made, () => latest.current), tableCommand(toggleTable), breakdownCommand(props.store)]);
    setTimeline(made);
    return () => {
      stopCommands();
      stopPointer();
      made.stop();
    };
  }, []);
  return { host, base, overlay, timeline, shown, failure, pointed };
}

function TimelineView(props: ViewProps) {
  const { state, store, navigator } = props;
  const [isTable, setTable] = useState(false);
  const { host, base, overlay, timeline, shown, failure, pointed } = useTimelineCanvas(props, () => setTable((old) => !old));
  const atCursor = useQuestion(cursorKey(state), (signal) => askAtCursor(props.source, cursorQuery(state)!, signal));
  const filter = !isFiltering(state.filter) || errorOfText(state.filter.text) !== '' ? null : atCursor.failure !== '' ? atCursor.failure : filterWords(state, atCursor.answer);
  const file = fileOf(state);
  const lane = laneOf(state);
  const sum = sumUnder(timeline, file, shown, pointed?.hover ?? null);
  const sumKey = sum === null ? '' : `${state.file} ${state.lane} ${sum.category} ${sum.event}`;
  const largest = useLatest(sumKey, async (signal) => ({ of: sumKey, block: sum === null ? null : await largestBlock(props.source, state, sum.category, sum.event, signal) }));
  const sentence = useMemo(() => (file === null || lane === null ? '' : sentenceOf(file, lane, shown, timeline)), [file, lane, shown, timeline]);
  if (file === null || lane === null) return null;
  const lack = lackOfPrediction(state, file, lane);
  const predicted = state.whatif === '' ? null : lack !== '' ? lack : shown?.predicted != null ? predictionWords(shown.predicted, lane) : (shown?.predictionFailure ?? '');
  // Requests a name that is not known yet; its arrival renders the view again.
  const stackOf = (stack: number) => {
    timeline?.stacks.want(state.file, [stack]);
    return timeline?.stacks.get(state.file, stack) ?? null;
  };
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="bar">
        <Choice label="Layout" value={state.layout} options={[['stacked', 'stacked'], ['address', 'by address']]} onChoose={(layout) => store.update({ layout, band: null })} />
        <Choice label="Axis" value={state.axis} options={axesOf(file).map((axis) => [axis, AXES[axis]] as const)} onChoose={(axis) => void navigator.setAxis(axis)} />
        <Choice label="Colour" value={state.colorBy} options={COLORINGS.map(([by, title]) => [by, title, lackOf(by, file)] as const)} onChoose={(colorBy) => store.update({ colorBy })} />
        <Choice label="What if" value={state.whatif} options={predictionOptions(state, lack)} onChoose={(whatif) => store.update({ whatif })} />
        <button type="button" disabled={navigator.isWhole() && state.band === null} onClick={() => navigator.fit()}>Whole recording</button>
        <button type="button" aria-pressed={isTable} onClick={() => setTable(!isTable)}>As a table</button>
        <button type="button" aria-pressed={state.breakdown.open} title="Q" onClick={() => toggleBreakdown(store)}>Breakdown</button>
        <span class="muted readout">{shown === null ? '' : readout(shown.picture.blocks)}</span>
      </div>
      <div class="timeline-body">
        <div class="timeline-main">
          <div class="plot" ref={host}>
            <canvas ref={base} role="img" aria-label={filter === null || filter === '' ? sentence : `${sentence} Filter: ${filter}.`} />
            <canvas ref={overlay} class="overlay" aria-hidden="true" />
            {pointed !== null && timeline !== null && (
              <Tooltip {...pointed} picture={shown?.picture ?? null} passing={shown?.passing ?? null} predicted={shown?.predicted ?? null} file={file} view={timeline.view()} stackOf={stackOf} largest={largest.answer?.of === sumKey ? largest.answer.block : null} />
            )}
            {failure !== '' && <div class="over"><Failed message={failure} /></div>}
            {shown === null && failure === '' && <div class="over"><p class="muted">Loading…</p></div>}
          </div>
          {shown !== null && <Legend entries={shown.coloring.legend} series={lane.series} state={state} store={store} predicted={predicted} hasPending={hasPending(shown)} filter={filter} />}
          {isTable && shown !== null && (
            <div class="scroll shown-table"><ShownTable picture={shown.picture} file={file} state={state} store={store} stackOf={stackOf} filter={filter} /></div>
          )}
        </div>
        {state.breakdown.open && <BreakdownPanel {...props} pointed={pointedIn(timeline, props, pointed)} />}
      </div>
    </section>
  );
}

function pointedIn(timeline: TimelineCanvas | null, props: ViewProps, at: { readonly hover: Hover; readonly dragged: Dragged } | null): Pointed {
  if (timeline === null || at === null) return NOTHING_POINTED;
  const isOverPlot = at.dragged === null && !Number.isNaN(at.hover.value);
  return { moment: isOverPlot ? timeline.momentAt(at.hover.position) : null, brush: brushOf(timeline, props, at.dragged) };
}

function hasPending({ picture }: Shown): boolean {
  return picture.blocks.flags.some((flags) => (flags & BLOCK_PENDING) !== 0);
}

// The category and the moment of the blocks under the pointer that are drawn as a sum.
function sumUnder(timeline: TimelineCanvas | null, file: FileMeta | null, shown: Shown | null, hover: Hover | null): { readonly category: string; readonly event: number } | null {
  if (timeline === null || file === null || shown === null || hover === null || hover.item === null) return null;
  if ((shown.picture.blocks.row[hover.item] ?? NO_ROW) !== NO_ROW) return null;
  const category = file.categories[timeline.categoryOf(hover.item)];
  return category === undefined ? null : { category, event: timeline.momentAt(hover.position) };
}

function toggleBreakdown(store: ViewProps['store']): void {
  store.update((old) => ({ breakdown: { ...old.breakdown, open: !old.breakdown.open } }));
}

function breakdownCommand(store: ViewProps['store']): Command {
  return { id: 'timeline.breakdown', title: 'Timeline: what the range or the cursor holds', group: 'Timeline', hotkeys: ['Q'], run: () => toggleBreakdown(store) };
}

function tableCommand(run: () => void): Command {
  return { id: 'timeline.table', title: 'Timeline: show as a table', group: 'Timeline', hotkeys: ['Shift+T'], run };
}

// Describes the canvas in one sentence for screen readers: the peak, its time, and the largest
// block.
function sentenceOf(file: FileMeta, lane: LaneMeta, shown: Shown | null, timeline: TimelineCanvas | null): string {
  const peak = `${lane.label}: peak ${formatBytes(lane.peak_bytes)} after event ${formatCount(lane.peak_event)}, ${formatBytes(lane.end_bytes)} at the end, ${formatCount(file.events)} events.`;
  if (shown === null) return peak;
  const { picture } = shown;
  const largest = largestItem(picture);
  if (largest === null) return peak;
  const { stack, forward_stack } = picture.blocks;
  const name = labelOf((id) => timeline?.stacks.get(file.file, id) ?? null, stack[largest]!, forward_stack[largest]!) ?? '';
  return `${peak} The largest block shown has ${formatBytes(picture.blocks.size[largest]!)}${name === '' ? '' : `, from ${name}`}.`;
}

export const TIMELINE_VIEW: View = { title: 'Timeline', component: TimelineView };
