// The comparison of the open recordings as ranks of a job, asked again as more of them are loaded.

import { useEffect, useState } from 'preact/hooks';
import type { Ranks } from '../../data/protocol';
import type { State } from '../../state/state';
import { keyOf, useQuestion, type Asked } from '../../widgets/use_question';
import type { ViewProps } from '../view';

export function useRanks({ state, source }: Pick<ViewProps, 'state' | 'source'>, isAsked: boolean): Asked<Ranks> {
  const [round, setRound] = useState(0);
  const asked = useQuestion(isAsked ? keyOf(known(state), round) : null, (signal) => source.ranks(signal));
  useEffect(() => {
    if (asked.answer?.has_more === true) setRound((old) => old + 1);
  }, [asked.answer]);
  return asked;
}

/** Whether ranks of a job are open. Any recordings can be compared, but these belong together. */
export function isJob(state: State): boolean {
  return (state.meta?.files.filter(({ rank }) => rank !== null).length ?? 0) > 1;
}

/** Returns how many recordings are loaded, or will not be: then there may be another answer. */
function known(state: State): number {
  return state.progress?.files.filter((file) => file.state === 'ready' || file.state === 'failed').length ?? 0;
}
