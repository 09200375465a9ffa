// The answers about the shown file that tabs and the overview need, as far as they are known. They
// are asked one after the other, those that may report a problem first, so that other questions
// about the file can be answered in between.

import { useRef } from 'preact/hooks';
import type { DataSource } from '../data/data_source';
import type { Answer, AnswerName } from '../data/protocol';
import { fileOf } from '../state/scope';
import type { State } from '../state/state';
import { keyOf, useQuestion } from './use_question';

export interface Answers {
  readonly of: Readonly<Partial<Record<AnswerName, Answer>>>;
  readonly failure: string; // why the first missing one is missing; '' if it did not fail
}

const ORDER: readonly AnswerName[] = ['oom', 'leaks', 'frag', 'ledger', 'report'];

/** About more events an answer may take seconds, during which a click would wait. */
const MANY_EVENTS = 5e6;

/**
 * Asks at once, but about a long recording only once the overview was shown, and about a running
 * process, whose answers change with each generation, only while it is shown.
 */
export function useAnswers(state: State, source: DataSource): Answers {
  const file = fileOf(state);
  const isShown = state.view === 'overview';
  const wasShown = useRef(false);
  wasShown.current ||= isShown;
  const isLive = file?.live !== undefined;
  // Answers need categories, which are not known until the file is ready.
  const progress = state.progress?.files.find((each) => each.file === state.file);
  const isReady = file !== null && progress?.state === 'ready';
  const isWanted = isLive ? isShown : wasShown.current || (file?.events ?? 0) <= MANY_EVENTS;
  const of: Partial<Record<AnswerName, Answer>> = {};
  let failure = '';
  let isNext = isReady && isWanted;
  for (const name of ORDER) {
    const key = isNext ? keyOf(state.file, name) : null;
    // The order never changes, so these are the same hooks in each rendering.
    const asked = useQuestion(key, (signal) => source.answer(state.file, name, signal));
    if (failure === '') ({ failure } = asked);
    // While another answer about a running process is computed, the last one is shown.
    isNext &&= asked.answer !== null && (!asked.loading || isLive);
    if (isNext && asked.answer !== null) of[name] = asked.answer;
  }
  return { of, failure };
}
