// An answer as a page: first the headline, then charts and tables of numbers that link to the
// blocks behind them, and last the text that the program prints.

import { Json } from '../../base/json';
import type { Answer, AnswerName } from '../../data/protocol';
import { fileOf } from '../../state/scope';
import type { State } from '../../state/state';
import { Answered, Loading } from '../../widgets/states';
import { Unfiltered } from '../../widgets/unfiltered';
import { keyOf, useQuestion } from '../../widgets/use_question';
import type { View, ViewProps } from '../view';
import { Facts, PageBody, type Links } from './answer_parts';
import { capacityOf, findingOf, type Mood } from './findings';
import { follow, hrefOf } from './follow';
import { fragPage } from './frag_page';
import { leaksPage } from './leaks_page';
import { ledgerPage } from './ledger_page';
import { oomPage } from './oom_page';
import type { Page } from './page';

const WHOLE_RECORDING = 'Answers are about the whole recording; the filter does not apply.';

interface AnswerKind {
  readonly name: AnswerName;
  readonly title: string;
  readonly waiting: string;
  readonly make: (json: Json, state: State) => Page;
}

/** Returns how links lead to places in the file that is shown. */
export function linksOf(props: ViewProps): Links {
  return { go: (link) => void follow(link, props), href: (link) => hrefOf(link, props.state) };
}

function makeView({ name, title, waiting, make }: AnswerKind): View {
  function AnswerView(props: ViewProps) {
    const { state, source } = props;
    // Answers need categories, which are not known until the file is ready.
    const progress = state.progress?.files.find((each) => each.file === state.file);
    const isReady = progress === undefined || progress.state === 'ready' || progress.state === 'failed';
    const key = state.meta !== null && isReady ? keyOf(state.file, name) : null;
    const asked = useQuestion(key, (signal) => source.answer(state.file, name, signal));
    return (
      <section class="view answer-view" aria-label={title}>
        <Unfiltered state={state} store={props.store} words={WHOLE_RECORDING} />
        {!isReady && <Loading what={`The recording is still being read: ${progress.what}`} />}
        <Answered asked={asked} what={waiting}>
          {(answer) => <AnswerPage answer={answer} mood={findingOf(answer, fileOf(state), props.answers.of.oom)?.mood ?? 'calm'} page={make(new Json(answer.json), state)} links={linksOf(props)} view={props} />}
        </Answered>
      </section>
    );
  }
  return { title, component: AnswerView };
}

interface AnswerPageProps {
  readonly answer: Answer;
  readonly mood: Mood;
  readonly page: Page;
  readonly links: Links;
  readonly view: Pick<ViewProps, 'state' | 'source'>;
}

function AnswerPage({ answer, mood, page, links, view }: AnswerPageProps) {
  return (
    <article class={`answer ${mood}`}>
      <h2>{answer.headline}</h2>
      {page.progress !== null && <HowFar {...page.progress} />}
      <Facts facts={page.facts} links={links} />
      <PageBody page={page} links={links} view={view} />
      <details>
        <summary>As the program prints it</summary>
        <pre tabIndex={0}>{answer.text}</pre>
      </details>
    </article>
  );
}

function HowFar({ have, need, what }: { readonly have: number; readonly need: number; readonly what: string }) {
  return (
    <p class="how-far">
      <meter min={0} max={Math.max(1, need)} value={have} aria-label={`${what} seen`} />
      <span>
        {have} of {need} {what} that an answer needs
      </span>
    </p>
  );
}

export const LEAKS_VIEW = makeView({ name: 'leaks', title: 'Leaks', waiting: 'Looking for growth…', make: (json, state) => leaksPage(json, (device) => capacityOf(fileOf(state), device)) });
export const OOM_VIEW = makeView({ name: 'oom', title: 'Out of memory', waiting: 'Looking for the cause…', make: oomPage });
export const LEDGER_VIEW = makeView({ name: 'ledger', title: 'Ledger', waiting: 'Adding up device memory…', make: ledgerPage });
export const FRAG_VIEW = makeView({ name: 'frag', title: 'Fragmentation', waiting: 'Looking at free memory…', make: fragPage });
