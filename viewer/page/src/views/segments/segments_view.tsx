// The allocator's state after one event: segments by pool and stream, what lies in them, what is lost
// to holes and to rounding, what waits for a stream; and the event itself in words.

import { useEffect, useState } from 'preact/hooks';
import { formatBytes } from '../../base/format_bytes';
import { NO_ROW, type FileMeta, type Segments } from '../../data/protocol';
import type { Command } from '../../state/commands';
import { cursorEvent, fileOf, laneOf } from '../../state/scope';
import { Answered, Empty } from '../../widgets/states';
import { useCommands } from '../../widgets/use_commands';
import { keyOf, useQuestion } from '../../widgets/use_question';
import type { View, ViewProps } from '../view';
import { eventOfStep, SeekBar, stepBeside } from './seek_bar';
import { firstSpot, SegmentsCanvas, type Spot } from './segments_canvas';
import { piecesOf } from './segments_layout';
import { pieceWords, segmentWords } from './segments_words';

function SegmentsView(props: ViewProps) {
  const { state, store, source } = props;
  const file = fileOf(state);
  const lane = laneOf(state);
  const event = cursorEvent(state);
  const key = lane?.has_segments === true ? keyOf(state.file, state.lane, event) : null;
  const asked = useQuestion(key, (signal) => source.segments(state.file, state.lane, event, signal));
  useCommands(props.commands, segmentCommands(file, event, (to) => store.update({ cursor: to })));
  if (file === null || lane === null) return null;
  if (!lane.has_segments) {
    return (
      <Empty title="No segments in this lane">
        <p>Segments are memory of the driver in which a caching allocator has its blocks; {lane.label} has none.</p>
      </Empty>
    );
  }
  return (
    <section class="view segments-view" aria-label="Segments">
      <SeekBar state={state} store={store} source={source} file={file} ns={asked.answer?.ns ?? null} />
      <Answered asked={asked} what="Going to that event…">
        {(segments) => <State {...props} segments={segments} categories={file.categories} />}
      </Answered>
    </section>
  );
}

function segmentCommands(file: FileMeta | null, event: number, go: (event: number) => void): Command[] {
  const group = 'Segments';
  const hasSteps = (): boolean => file !== null && file.steps.source !== '';
  const byStep = (by: number): void => {
    if (file !== null) go(eventOfStep(file, stepBeside(file, event, by)));
  };
  return [
    { id: 'segments.previous_step', title: 'Previous step', group, hotkeys: ['['], run: () => byStep(-1), enabled: hasSteps },
    { id: 'segments.next_step', title: 'Next step', group, hotkeys: [']'], run: () => byStep(1), enabled: hasSteps },
  ];
}

interface StateProps extends ViewProps {
  readonly segments: Segments;
  readonly categories: readonly string[];
}

function State({ state, store, segments, categories }: StateProps) {
  const [spot, setSpot] = useState<Spot>(() => firstSpot(segments));
  useEffect(() => setSpot(firstSpot(segments)), [segments]);
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
        {formatBytes(segments.live_bytes)} live of {formatBytes(segments.reserved_bytes)} reserved; {formatBytes(free)} are not, the
        largest hole is {formatBytes(segments.largest_hole)}. <Legend />
      </p>
      {segments.segments.length === 0 ? (
        <Empty title="Nothing is reserved yet">
          <p>No segment exists after this event.</p>
        </Empty>
      ) : (
        <SegmentsCanvas
          segments={segments}
          categories={categories}
          byCategory={state.colorBy === 'category'}
          selectedRow={state.selection.kind === 'block' ? state.selection.row : null}
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

function Legend() {
  return (
    <span class="legend">
      <span class="hatched forward" aria-hidden="true" /> waiting for a stream{' '}
      <span class="hatched backward" aria-hidden="true" /> lost to rounding
    </span>
  );
}

export const SEGMENTS_VIEW: View = { title: 'Segments', component: SegmentsView };
