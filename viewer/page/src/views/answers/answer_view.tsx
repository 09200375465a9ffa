// An answer as a page: first the headline, then tables of numbers that link to the blocks behind
// them, and last the text that the program prints.

import { Json } from '../../base/json';
import type { Answer, AnswerName } from '../../data/protocol';
import { Answered, Loading } from '../../widgets/states';
import { Unfiltered } from '../../widgets/unfiltered';
import { keyOf, useQuestion } from '../../widgets/use_question';
import type { View, ViewProps } from '../view';
import { follow } from './follow';
import { fragPage } from './frag_page';
import { leaksPage } from './leaks_page';
import { ledgerPage } from './ledger_page';
import { oomPage } from './oom_page';
import type { Cell, Link, Page, Section } from './page';

const WHOLE_RECORDING = 'Answers are about the whole recording; the filter does not apply.';

export type Follow = (link: Link) => void;

interface AnswerKind {
  readonly name: AnswerName;
  readonly title: string;
  readonly waiting: string;
  readonly make: (json: Json) => Page;
}

function makeView({ name, title, waiting, make }: AnswerKind): View {
  function AnswerView(props: ViewProps) {
    const { state, source } = props;
    // Answers need categories, which are not known until the file is ready.
    const progress = state.progress?.files.find((each) => each.file === state.file);
    const isReady = progress === undefined || progress.state === 'ready' || progress.state === 'failed';
    const key = state.meta !== null && isReady ? keyOf(state.file, name) : null;
    const asked = useQuestion(key, (signal) => source.answer(state.file, name, signal));
    const go: Follow = (link) => void follow(link, props);
    return (
      <section class="view answer-view" aria-label={title}>
        <Unfiltered state={state} store={props.store} words={WHOLE_RECORDING} />
        {!isReady && <Loading what={`The recording is still being read: ${progress.what}`} />}
        <Answered asked={asked} what={waiting}>
          {(answer) => <AnswerPage answer={answer} page={make(new Json(answer.json))} go={go} />}
        </Answered>
      </section>
    );
  }
  return { title, component: AnswerView };
}

function AnswerPage({ answer, page, go }: { readonly answer: Answer; readonly page: Page; readonly go: Follow }) {
  return (
    <article class={`answer ${page.tone}`}>
      <h2>{answer.headline}</h2>
      {page.progress !== null && <HowFar {...page.progress} />}
      {page.facts.length > 0 && (
        <dl class="facts">
          {page.facts.map(([name, cell]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <Value cell={cell} go={go} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      <NotesAndTables page={page} go={go} />
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

/** Shows what follows the headline of an answer or a comparison. */
export function NotesAndTables({ page, go }: { readonly page: Page; readonly go: Follow }) {
  return (
    <>
      {page.notes.length > 0 && (
        <ul class="notes">
          {page.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
      {page.sections.map((section) => (
        <SectionTable key={section.title} section={section} go={go} />
      ))}
    </>
  );
}

function SectionTable({ section, go }: { readonly section: Section; readonly go: Follow }) {
  return (
    <section class="answer-section" aria-label={section.title}>
      <h3>{section.title}</h3>
      {section.note !== '' && <p class="muted">{section.note}</p>}
      <div class="scroll-x" tabIndex={0} role="group" aria-label={`${section.title}: table`}>
        <table>
          <thead>
            <tr>
              {section.columns.map((column) => (
                <th key={column.title} scope="col" class={column.numeric ? 'numeric' : ''}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {section.rows.map((row, r) => (
              <tr key={r}>
                {row.map((cell, c) => (
                  <td key={c} class={section.columns[c]?.numeric === true ? 'numeric' : ''}>
                    <Value cell={cell} go={go} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Value({ cell, go }: { readonly cell: Cell; readonly go: Follow }) {
  const { link } = cell;
  if (link === null) return <span title={cell.title}>{cell.text}</span>;
  return (
    <button type="button" class="link" title={cell.title} onClick={() => go(link)}>
      {cell.text}
    </button>
  );
}

export const LEAKS_VIEW = makeView({ name: 'leaks', title: 'Leaks', waiting: 'Looking for growth…', make: leaksPage });
export const OOM_VIEW = makeView({ name: 'oom', title: 'Out of memory', waiting: 'Looking for the cause…', make: oomPage });
export const LEDGER_VIEW = makeView({ name: 'ledger', title: 'Ledger', waiting: 'Adding up device memory…', make: ledgerPage });
export const FRAG_VIEW = makeView({ name: 'frag', title: 'Fragmentation', waiting: 'Looking at free memory…', make: fragPage });
