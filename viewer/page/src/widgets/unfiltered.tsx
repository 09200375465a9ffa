// A line for views that the shared filter does not apply to, or not entirely: it says so and offers
// to clear the filter.

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
