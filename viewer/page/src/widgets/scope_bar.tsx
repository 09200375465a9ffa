// Selects what the flame graph and the table count: the live set at a moment, growth between two,
// or allocations in the range. Describes the moment in words and offers ways to move it.

import { cursorEvent, laneOf, scopeWords } from '../state/scope';
import type { State } from '../state/state';
import type { Store } from '../state/store';
import { Choice } from './choice';

const OF = [
  ['live', 'Held at the cursor'],
  ['growth', 'Growth between the cursors'],
  ['born', 'Allocated in the range'],
  ['kept', 'Allocated in the range and kept'],
] as const;

export function ScopeBar({ state, store }: { readonly state: State; readonly store: Store }) {
  const lane = laneOf(state);
  const atCursor = state.of === 'live' || state.of === 'growth';
  return (
    <div class="bar scope-bar" role="group" aria-label="What is counted">
      <Choice label="Count" value={state.of} options={OF} onChoose={(of) => store.update({ of })} />
      <span class="muted" role="status">
        {scopeWords(state)}
      </span>
      {atCursor && state.cursor !== null && (
        <button type="button" onClick={() => store.update({ cursor: null })}>
          To the peak
        </button>
      )}
      {atCursor && lane !== null && (
        <button type="button" onClick={() => store.update((old) => ({ cursor: lastEvent(old) }))}>
          To the end
        </button>
      )}
      {state.of === 'growth' && (
        <button type="button" onClick={() => store.update((old) => ({ base: cursorEvent(old) }))}>
          Measure growth from here
        </button>
      )}
    </div>
  );
}

function lastEvent(state: State): number {
  return state.meta?.files.find((file) => file.file === state.file)?.events ?? 0;
}
