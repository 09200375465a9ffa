// The allocator's state after one event: segments by pool and stream, their contents, what is lost
// to holes and rounding, what waits for a stream, and a description of the event.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { formatBytes } from '../../base/format_bytes';
import { words } from '../../base/words';
import { NO_ROW, type EventRow, type FileMeta, type LaneMeta, type Scope, type Segments } from '../../data/protocol';
import { cssColor, hueOfCategory } from '../../render/palette';
import type { Command } from '../../state/commands';
import { isFiltering } from '../../state/filter';
import { momentKey } from '../../state/live';
import { cursorEvent, fileOf, laneOf } from '../../state/scope';
import { Answered, Empty, Failed } from '../../widgets/states';
import { useCommands } from '../../widgets/use_commands';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { EventsPanel } from '../events/events_panel';
import type { View, ViewProps } from '../view';
import { pieceTest, rowsOf } from './passing_rows';
import { usePlayback, type Playback } from './playback';
import { eventOfStep, SeekBar, stepBeside } from './seek_bar';
import { SegmentsCanvas, spotOf, type Spot } from './segments_canvas';
import { piecesOf } from './segments_layout';
import { heldByCategory, pieceWords, segmentWords } from './segments_words';

function SegmentsView(props: ViewProps) {
  const { state, store, source } = props;
  const file = fileOf(state);
  const lane = laneOf(state);
  const event = cursorEvent(state);
  const key = lane?.has_segments === true ? keyOf(state.file, state.lane, momentKey(state, event)) : null;
  const asked = useQuestion(key, (signal) => source.segments(state.file, state.lane, event, signal));
  const filterKey = key !== null && isFiltering(state.filter) ? keyOf(key, state.filter) : null;
  const scope: Scope = { file: state.file, lane: state.lane, filter: state.filter, of: 'live', from: 0, to: event };
  const passing = useQuestion(filterKey, (signal) => rowsOf(source, scope, signal));
  const go = (to: number): void => store.update({ cursor: to });
  const window = { from: Math.floor(state.rangeEvents.from), to: Math.ceil(state.rangeEvents.to) };
  const playback = usePlayback(event, window, asked.loading || passing.loading, go);
  const toggleList = (): void => store.update((old) => ({ list: { ...old.list, open: !old.list.open } }));
  useCommands(props.commands, segmentCommands(file, event, playback, go, toggleList));
  const [entry, setEntry] = useState<EventRow | null>(null);
  if (file === null || lane === null) return null;
  return (
    <section class="view segments-view" aria-label="Segments">
      <SeekBar state={state} store={store} source={source} file={file} ns={asked.answer?.ns ?? null} playback={playback} onList={toggleList} />
      <div class="timeline-body">
        <div class="timeline-main">
          {lane.has_segments ? (
            <>
              {passing.failure !== '' && <Failed message={passing.failure} />}
              <Answered asked={asked} what="Loading that event…">
                {(segments) => <State {...props} segments={segments} categories={file.categories} rows={passing.answer} entry={entry} />}
              </Answered>
            </>
          ) : <NoSegments lane={lane} />}
        </div>
        {state.list.open && <EventsPanel {...props} onEntry={setEntry} />}
      </div>
    </section>
  );
}

function NoSegments({ lane }: { readonly lane: LaneMeta }) {
  return (
    <Empty title="No segments in this lane">
      <p>A caching allocator places its blocks in segments, memory of the driver; {lane.label} has none.</p>
    </Empty>
  );
}

function segmentCommands(file: FileMeta | null, event: number, playback: Playback, go: (event: number) => void, toggleList: () => void): Command[] {
  const group = 'Segments';
  const hasSteps = (): boolean => file !== null && file.steps.source !== '';
  const byStep = (by: number): void => {
    if (file !== null) go(eventOfStep(file, stepBeside(file, event, by)));
  };
  return [
    { id: 'segments.previous_step', title: 'Previous step', group, hotkeys: ['['], run: () => byStep(-1), enabled: hasSteps },
    { id: 'segments.next_step', title: 'Next step', group, hotkeys: [']'], run: () => byStep(1), enabled: hasSteps },
    { id: 'segments.list', title: 'Show or hide the list of events', group, hotkeys: ['Q'], run: toggleList },
    { id: 'segments.play', title: 'Play the shown range, or pause', group, hotkeys: ['V'], run: playback.toggle, enabled: () => file !== null },
  ];
}

interface StateProps extends ViewProps {
  readonly segments: Segments;
  readonly categories: readonly string[];
  readonly rows: ReadonlySet<number> | null; // that match the filter; null: no filter, or not loaded yet
  readonly entry: EventRow | null; // the entry of the event list at the cursor; null: not known
}

function State({ state, store, segments, categories, rows, entry }: StateProps) {
  const passes = useMemo(() => (rows === null ? null : pieceTest(rows, state.filter, categories)), [rows, state.filter, categories]);
  const [spot, setSpot] = useState<Spot>(() => spotOf(segments, entry));
  useEffect(() => setSpot(spotOf(segments, entry)), [segments, entry]);
  const segment = segments.segments[spot.segment];
  const piece = segment === undefined ? undefined : piecesOf(segment)[spot.piece];
  const choose = (to: Spot): void => {
    setSpot(to);
    const at = segments.segments[to.segment];
    const chosen = at === undefined ? undefined : piecesOf(at)[to.piece];
    const row = chosen === undefined || chosen.index < 0 ? NO_ROW : at!.row[chosen.index]!;
    store.update({ selection: row === NO_ROW ? { kind: 'none' } : { kind: 'block', row } });
  };
  const free = segments.reserved_bytes - segments.live_bytes;
  return (
    <>
      <p class="event-words" role="status">
        {segments.what}
      </p>
      <p class="muted">
        {formatBytes(segments.live_bytes)} live of {formatBytes(segments.reserved_bytes)} reserved; {formatBytes(free)} are not live, the
        largest hole is {formatBytes(segments.largest_hole)}.
      </p>
      <Legend held={state.colorBy === 'category' ? heldByCategory(segments) : []} categories={categories} />
      {segments.segments.length === 0 ? (
        <Empty title="Nothing is reserved yet">
          <p>No segment exists after this event.</p>
        </Empty>
      ) : (
        <SegmentsCanvas
          segments={segments}
          categories={categories}
          sites={state.colorBy === 'category' ? null : (laneOf(state)?.sites ?? [])}
          selectedRow={state.selection.kind === 'block' ? state.selection.row : null}
          passes={passes}
          spot={spot}
          onSpot={choose}
        />
      )}
      <output class="segment-spot" aria-live="polite">
        {segment === undefined ? '' : piece === undefined ? segmentWords(segment) : pieceWords(segment, piece, categories)}
      </output>
    </>
  );
}

interface LegendProps {
  readonly held: ReturnType<typeof heldByCategory>; // empty: colours represent stacks
  readonly categories: readonly string[];
}

function Legend({ held, categories }: LegendProps) {
  return (
    <p class="legend">
      {held.map(([code, bytes]) => {
        const name = categories[code] ?? 'unknown';
        return (
          <span key={code} class="swatch-entry">
            <span class="legend-swatch" aria-hidden="true" style={{ background: cssColor(hueOfCategory(name)) }} /> {words(name)} {formatBytes(bytes)}
          </span>
        );
      })}
      <span class="swatch-entry"><span class="hatched free" aria-hidden="true" /> free</span>
      <span class="swatch-entry"><span class="hatched forward" aria-hidden="true" /> waiting for a stream</span>
      <span class="swatch-entry"><span class="hatched backward" aria-hidden="true" /> lost to rounding</span>
    </p>
  );
}

export const SEGMENTS_VIEW: View = { title: 'Segments', component: SegmentsView };
