// Holds the State and notifies listeners of changes. A change is a function of the old state.

import { INITIAL_STATE, type State } from './state';

export class Store {
  private state: State = INITIAL_STATE;
  private readonly listeners = new Set<(state: State, old: State) => void>();

  get(): State {
    return this.state;
  }

  update(change: Partial<State> | ((state: State) => Partial<State>)): void {
    const old = this.state;
    this.state = { ...old, ...(typeof change === 'function' ? change(old) : change) };
    for (const listener of this.listeners) listener(this.state, old);
  }

  /** Returns the function that unsubscribes. */
  subscribe(listener: (state: State, old: State) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
