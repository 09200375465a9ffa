// Holds the State and notifies listeners of changes. A change is a function of the old state.

import { INITIAL_STATE, type State } from './state';

/** `at`: when the change was requested, as Date.now() reports it. */
export type Listener = (state: State, old: State, at: number) => void;

export class Store {
  private state: State = INITIAL_STATE;
  private readonly listeners = new Set<Listener>();

  get(): State {
    return this.state;
  }

  /** `at` is earlier than now if the change had to wait for data. */
  update(change: Partial<State> | ((state: State) => Partial<State>), at = Date.now()): void {
    const old = this.state;
    this.state = { ...old, ...(typeof change === 'function' ? change(old) : change) };
    for (const listener of this.listeners) listener(this.state, old, at);
  }

  /** Returns the function that unsubscribes. */
  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
