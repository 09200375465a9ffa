// The details of a stack, an instant or a range.

import { urgent } from '../../base/activity';
import { formatBytes, formatCount, formatDelta, formatExactBytes } from '../../base/format_bytes';
import { formatDuration, formatMoment } from '../../base/format_time';
import { NO_ROW, type FileMeta } from '../../data/protocol';
import { withNote } from '../../state/notes';
import { fileOf } from '../../state/scope';
import { DraftInput } from '../../widgets/draft_input';
import { Answered } from '../../widgets/states';
import { keyOf, useQuestion } from '../../widgets/use_question';
import type { ViewProps } from '../view';
import { CloseButton, Facts } from './block_panel';
import { copyText } from './copy';
import { stackMarkdown, stackText } from './details_text';
import { StackFrames } from './stack_frames';

export function StackPanel({ stack, state, store, source, announce }: ViewProps & { readonly stack: number }) {
  const asked = useQuestion(keyOf(state.file, stack), (signal) => urgent.track(source.stacks(state.file, [stack], signal)));
  const copy = (text: string): void => void copyText(text).then((isDone) => announce(isDone ? 'Copied' : 'The browser did not let the page copy'));
  return (
    <Answered asked={asked} what="Loading the stack…">
      {([info]) => info === undefined ? <p>That stack is not in the recording.</p> : (
        <article aria-label="Stack">
          <header class="bar">
            <h3>{info.label}</h3>
            <button type="button" onClick={() => store.update((old) => ({ filter: { ...old.filter, stack } }))}>All from this stack</button>
            <button type="button" onClick={() => copy(stackText(info))}>Copy text</button>
            <button type="button" onClick={() => copy(stackMarkdown(info).join('\n'))}>Copy Markdown</button>
            <CloseButton store={store} />
          </header>
          <StackFrames key={stack} title="Frames, innermost first" stack={info} file={state.file} source={source} />
        </article>
      )}
    </Answered>
  );
}

/** Returns what is known of a moment without asking: its marks and other instants. */
export function instantFacts(file: FileMeta, event: number): (readonly [string, string])[] {
  const here = <T extends { readonly event: number }>(instants: readonly T[]): T[] => instants.filter((instant) => instant.event === event);
  return [
    ...here(file.ooms).map((oom) => ['out of memory', `${formatBytes(oom.requested)} (${formatExactBytes(oom.requested)}) requested on GPU ${oom.device}`] as const),
    ...here(file.retries).map((retry) => ['retry', `the allocator emptied its cache and tried again${retry.name === '' ? '' : ` (${retry.name})`}`] as const),
    ...here(file.marks).map((mark) => ['mark', mark.name] as const),
    ...here(file.snapshots).map((snapshot) => ['snapshot', snapshot.name] as const),
    ...here(file.losses).map((loss) => ['lost', loss.name === '' ? 'events are missing here' : loss.name] as const),
  ];
}

export function InstantPanel({ event, ...props }: ViewProps & { readonly event: number }) {
  const { state, store, source } = props;
  const file = fileOf(state)!;
  const asked = useQuestion(keyOf(state.file, state.lane, event), (signal) => urgent.track(source.segments(state.file, state.lane, event, signal)));
  const oom = file.ooms.find((each) => each.event === event);
  return (
    <article aria-label="Instant">
      <header class="bar">
        <h3>After event {formatCount(event)}</h3>
        <button type="button" onClick={() => store.update({ cursor: event, view: 'segments' })}>Segments at this event</button>
        <button type="button" onClick={() => store.update({ cursor: event, of: 'live', view: 'flame' })}>Flame graph of what was live</button>
        {oom !== undefined && <button type="button" onClick={() => store.update({ cursor: event, view: 'oom' })}>Why it ran out</button>}
        <CloseButton store={store} />
      </header>
      <Facts facts={instantFacts(file, event)} />
      <Answered asked={asked} what="Loading the moment…">
        {(segments) => (
          <>
            <Facts
              facts={[
                ['time', formatMoment(segments.ns, 1e3)], ['event', segments.what], ['live', formatBytes(segments.live_bytes)],
                ...(segments.reserved_bytes > 0 ? [['reserved', formatBytes(segments.reserved_bytes)] as const, ['largest hole', formatBytes(segments.largest_hole)] as const] : []),
              ]}
            />
            {file.live === undefined && <NoteField key={event} event={event} ns={segments.ns} state={state} store={store} />}
            {segments.row !== NO_ROW && (
              <button type="button" onClick={() => store.update({ selection: { kind: 'block', row: segments.row } })}>The block of this event</button>
            )}
          </>
        )}
      </Answered>
      {oom !== undefined && oom.stack > 0 && <OomStack {...props} stack={oom.stack} />}
    </article>
  );
}

interface NoteFieldProps extends Pick<ViewProps, 'state' | 'store'> {
  readonly event: number;
  readonly ns: number;
}

function NoteField({ event, ns, state, store }: NoteFieldProps) {
  const { file } = state;
  const written = state.notes.find((note) => note.file === file && note.event === event)?.text ?? '';
  return (
    <p class="details-note">
      <label>
        Note <DraftInput
          maxLength={200} value={written} placeholder="kept in the address of this page"
          onCommit={(text) => {
            store.update((old) => ({ notes: withNote(old.notes, { file, event, ns, text }) }));
            return true;
          }}
        />
      </label>
    </p>
  );
}

function OomStack({ stack, state, source }: ViewProps & { readonly stack: number }) {
  const asked = useQuestion(keyOf(state.file, stack), (signal) => source.stacks(state.file, [stack], signal));
  const info = asked.answer?.[0];
  return info === undefined ? null : <StackFrames title="Requested at" stack={info} file={state.file} source={source} />;
}

export function RangePanel({ from, to, state, store, source, navigator }: ViewProps & { readonly from: number; readonly to: number }) {
  const window = { file: state.file, lane: state.lane, axis: 'event', from, to: Math.max(to, from + 1), columns: 256 } as const;
  const asked = useQuestion(keyOf(window), (signal) => urgent.track(source.curve(window, signal)));
  const look = (of: 'growth' | 'born' | 'kept', view: 'flame' | 'table'): void => {
    store.update({ base: from, cursor: to, of, view });
    void navigator.showEvents(from, to);
  };
  return (
    <article aria-label="Range">
      <header class="bar">
        <h3>Events {formatCount(from)} to {formatCount(to)}</h3>
        <button type="button" title="F" onClick={() => void navigator.showEvents(from, to)}>Show only this</button>
        <button type="button" onClick={() => look('growth', 'flame')}>Growth as a flame graph</button>
        <button type="button" onClick={() => look('kept', 'table')}>Allocated here and kept</button>
        <button type="button" onClick={() => look('born', 'table')}>Allocated here</button>
        <CloseButton store={store} />
      </header>
      <Answered asked={asked} what="Measuring…">
        {({ ns, series }) => {
          const live = series.get('live');
          const last = ns.length - 1;
          return (
            <Facts
              facts={[
                ['events', formatCount(to - from)], ['time', formatDuration(ns[last]! - ns[0]!)],
                ...(live === undefined ? [] : [
                  ['live', `${formatBytes(live.mid[0]!)} to ${formatBytes(live.mid[last]!)} (${formatDelta(live.mid[last]! - live.mid[0]!)})`] as const,
                  ['peak', formatBytes(live.max.reduce((most, bytes) => Math.max(most, bytes), 0))] as const,
                ]),
              ]}
            />
          );
        }}
      </Answered>
    </article>
  );
}
