// Which changes of the state are steps of the browser's history, so that Back undoes them. A
// series of changes of one kind, such as the turns of a wheel or the letters of a filter, is one
// step.

import type { State } from './state';

/** A change that is made by hand; null: one that only follows from the data, or an option. */
export type Step = 'place' | 'window' | 'selection' | 'filter';

/** How long a series of changes rests before the next one is a new step. */
const RESTS_MS = 700;
/** A window that was requested so soon after a selection moves to what is selected: it is part of that step. */
const MOVES_MS = 250;

export function stepOf(state: State, old: State): Step | null {
  const differs = (...names: readonly (keyof State)[]): boolean => names.some((name) => state[name] !== old[name]);
  // What a new recording, or a new generation of one, changes by itself.
  if (differs('meta') || old.meta === null) return null;
  if (differs('view', 'file', 'lane', 'other', 'axis', 'layout', 'lanes')) return 'place';
  if (differs('selection', 'rangeA')) return 'selection';
  if (differs('filter', 'whatif', 'notes')) return 'filter';
  if (differs('band', 'lanesRange') || (differs('range') && !(state.following && old.following))) return 'window';
  return null;
}

export class HistorySteps {
  private last: { readonly step: Step; readonly at: number } | null = null;

  /**
   * Returns whether the change begins a new step. A selection and a place always do. `at`: when the
   * change was requested.
   */
  begins(step: Step, at: number): boolean {
    const { last } = this;
    const since = last === null ? Infinity : at - last.at;
    if (step === 'window' && (last?.step === 'selection' || last?.step === 'place') && since < MOVES_MS) return false;
    this.last = { step, at };
    const isSeries = step === 'window' || step === 'filter';
    return !(isSeries && last?.step === step && since < RESTS_MS);
  }
}
