// Selects the moment at which the allocator's state is shown: by event, step or time.

import { useState } from 'preact/hooks';
import { type DataSource, messageOf } from '../../data/data_source';
import { eventAt } from '../../data/event_at';
import type { FileMeta } from '../../data/protocol';
import { cursorEvent } from '../../state/scope';
import type { State } from '../../state/state';
import type { Store } from '../../state/store';
import { DraftInput } from '../../widgets/draft_input';
import type { Playback } from './playback';

interface SeekBarProps {
  readonly state: State;
  readonly store: Store;
  readonly source: DataSource;
  readonly file: FileMeta;
  readonly ns: number | null; // of the state that is shown
  readonly playback: Playback;
  readonly onList: () => void; // shows or hides the list of events
}

export function SeekBar({ state, store, source, file, ns, playback, onList }: SeekBarProps) {
  const [failure, setFailure] = useState('');
  const event = cursorEvent(state);
  const go = (to: number): void =>
    store.update({ cursor: Math.min(Math.max(0, Math.round(to)), file.events), selection: { kind: 'none' } });
  const goToTime = (seconds: number): void => {
    const { file: index, lane } = state;
    eventAt(source, index, lane, seconds * 1e9).then(
      (found) => {
        if (store.get().file === index && store.get().lane === lane) go(found);
      },
      (error: unknown) => setFailure(messageOf(error)),
    );
  };
  const step = stepOf(file, event);
  return (
    <div class="bar seek-bar" role="group" aria-label="Moment">
      <button type="button" aria-label="Previous event" onClick={() => go(event - 1)}>
        ◂
      </button>
      <button type="button" aria-label="Next event" onClick={() => go(event + 1)}>
        ▸
      </button>
      <button
        type="button" aria-pressed={playback.isPlaying} onClick={playback.toggle}
        title="Plays the range that the timeline shows in twenty seconds (V)"
      >
        {playback.isPlaying ? 'Pause' : 'Play'}
      </button>
      <input
        type="range"
        class="seek"
        aria-label="Event"
        min={0}
        max={file.events}
        step={1}
        value={event}
        onInput={(input) => go(Number(input.currentTarget.value))}
      />
      <NumberField label="Event" value={String(event)} onNumber={go} />
      {file.steps.source !== '' && (
        <NumberField label="Step" value={step === null ? '' : String(step)} onNumber={(to) => go(eventOfStep(file, to))} />
      )}
      <NumberField label="Seconds" value={ns === null ? '' : (ns / 1e9).toFixed(6)} onNumber={goToTime} />
      {state.cursor !== null && (
        <button type="button" onClick={() => store.update({ cursor: null })}>
          To the peak
        </button>
      )}
      <button type="button" aria-pressed={state.list.open} title="Q" onClick={onList}>Events</button>
      {failure !== '' && <span role="alert">{failure}</span>}
    </div>
  );
}

/** Returns the step that contains the event, or null if it is before, between or after steps. */
export function stepOf(file: Pick<FileMeta, 'steps'>, event: number): number | null {
  const { begin, end } = file.steps;
  const at = begin.findIndex((from, i) => from < event && event <= end[i]!);
  return at < 0 ? null : at + 1;
}

/**
 * Returns the first event of a step, counted from 1, or of the nearest step if there is no such
 * step.
 */
export function eventOfStep(file: Pick<FileMeta, 'steps'>, step: number): number {
  const { begin } = file.steps;
  const at = Math.min(Math.max(1, Math.round(step)), begin.length) - 1;
  return (begin[at] ?? -1) + 1;
}

/**
 * Returns the step before (`by` -1) or after (`by` 1) that of the event, or the nearer step on that
 * side if it is between steps.
 */
export function stepBeside(file: Pick<FileMeta, 'steps'>, event: number, by: number): number {
  const begun = file.steps.begin.filter((from) => from < event).length;
  const own = stepOf(file, event);
  return own !== null ? own + by : by < 0 ? begun : begun + 1;
}

interface NumberFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onNumber: (value: number) => void;
}

function NumberField({ label, value, onNumber }: NumberFieldProps) {
  return (
    <label class="choice">
      <span>{label}</span>
      <DraftInput
        inputMode="decimal"
        size={10}
        value={value}
        onCommit={(text) => {
          const number = Number(text.replaceAll(',', ''));
          if (text !== '' && Number.isFinite(number)) onNumber(number);
          return Number.isFinite(number);
        }}
      />
    </label>
  );
}
