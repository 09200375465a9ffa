// One line where the filter that all views share does not choose what is shown, or not all of it: it says so, and
// takes the filter off.

import { isFiltering } from '../state/filter';
import { NO_FILTER, type State } from '../state/state';
import type { Store } from '../state/store';

interface UnfilteredProps {
  readonly state: State;
  readonly store: Store;
  readonly words: string;
}

export function Unfiltered({ state, store, words }: UnfilteredProps) {
  if (!isFiltering(state.filter)) return null;
  return (
    <p class="bar unfiltered" role="note">
      <span>{words}</span>
      <button type="button" onClick={() => store.update({ filter: NO_FILTER })}>
        Show without the filter
      </button>
    </p>
  );
}
