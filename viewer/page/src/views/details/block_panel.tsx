// The details of a block: its facts, its lifetime, its neighbours, and the stacks that allocated
// and freed it.

import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { urgent } from '../../base/activity';
import { formatBytes } from '../../base/format_bytes';
import { NO_ROW, type BlockDetails, type Neighbour } from '../../data/protocol';
import { cursorEvent } from '../../state/scope';
import { Answered } from '../../widgets/states';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { bitOf } from '../events/event_words';
import type { ViewProps } from '../view';
import { copyText } from './copy';
import { aliveWords, blockFacts, blockMarkdown, blockText, neighbourWords, SAVED } from './details_text';
import { StackFrames } from './stack_frames';

export function BlockPanel({ row, ...props }: ViewProps & { readonly row: number }) {
  const { state, source } = props;
  const asked = useQuestion(keyOf(state.file, row), (signal) => urgent.track(source.block(state.file, row, signal)));
  return (
    <Answered asked={asked} what="Loading the block…">
      {(block) => <Block block={block} {...props} />}
    </Answered>
  );
}

function Block({ block, ...props }: ViewProps & { readonly block: BlockDetails }) {
  const { state, store, source, commands, navigator, announce } = props;
  const copy = (text: string): void => {
    void copyText(text).then((isDone) => announce(isDone ? 'Copied' : 'The browser did not let the page copy'));
  };
  const onlyStack = (): void => store.update((old) => ({ filter: { ...old.filter, stack: block.stack.stack } }));
  const showLife = (): void => void navigator.showEvents(block.birth, Math.min(block.death, fileEvents(props)));
  useEffect(
    () =>
      commands.register([
        { id: 'details.copy', title: 'Copy the block as text', group: 'Selection', hotkeys: ['Y'], run: () => copy(blockText(block)) },
        { id: 'details.copy_markdown', title: 'Copy the block as Markdown', group: 'Selection', hotkeys: ['Shift+Y'], run: () => copy(blockMarkdown(block)) },
        { id: 'details.stack', title: 'Show only blocks from this stack', group: 'Selection', hotkeys: ['Shift+A'], run: onlyStack },
        { id: 'details.life', title: "Show the block's life", group: 'Selection', hotkeys: ['F'], run: showLife },
      ]),
    [block],
  );
  return (
    <article aria-label="Block">
      <header class="bar">
        <h3>{formatBytes(block.size)} from {block.stack.label === '' ? 'an unknown place' : block.stack.label}</h3>
        <button type="button" title="Shift + A" onClick={onlyStack}>All from this stack</button>
        <button type="button" title="F" onClick={showLife}>Show its life</button>
        <button type="button" onClick={() => void navigator.showEvent(block.birth)} disabled={cursorEvent(state) === block.birth}>To its birth</button>
        <EventButton {...props} title="Alloc event" event={block.birth} lane={block.lane} kinds={bitOf('alloc') | bitOf('segment_alloc')} />
        <EventButton {...props} title="Free event" event={block.death} lane={block.lane} kinds={bitOf('free') | bitOf('free_requested') | bitOf('segment_free')} />
        <button type="button" title="Y" onClick={() => copy(blockText(block))}>Copy text</button>
        <button type="button" title="Shift + Y" onClick={() => copy(blockMarkdown(block))}>Copy Markdown</button>
        <CloseButton store={store} />
      </header>
      <p class="details-alive">
        {aliveWords(block)}{' '}
        {block.alive.includes(SAVED) && <button type="button" onClick={() => void commands.run('filter.autograd')}>All that autograd keeps</button>}
      </p>
      <div class="details-columns">
        <Facts facts={blockFacts(block).filter(([name]) => name !== 'alive as' && name !== 'tensor' && (name !== 'category' || block.alive !== '' || block.category === 'unknown'))}>
          <NeighbourFact name="before it" neighbour={block.before} store={store} />
          <NeighbourFact name="after it" neighbour={block.after} store={store} />
        </Facts>
        <div>
          <StackFrames key={`s${block.row}`} title="Allocated at" stack={block.stack} file={state.file} source={source} />
          {block.forward_stack !== null && <StackFrames key={`f${block.row}`} title="Forward call" stack={block.forward_stack} file={state.file} source={source} />}
          {block.free_stack !== null && <StackFrames key={`d${block.row}`} title="Freed at" stack={block.free_stack} file={state.file} source={source} />}
        </div>
      </div>
    </article>
  );
}

interface EventButtonProps extends ViewProps {
  readonly title: string;
  readonly event: number;
  readonly lane: number | null; // null: in none of the lanes shown
  readonly kinds: number; // that must be listed
}

/** Leads to the block's entry in the list of events. */
function EventButton({ state, store, title, event, lane, kinds }: EventButtonProps) {
  const show = (): void => store.update((old) => ({
    view: 'segments', cursor: event, lane: lane ?? old.lane, list: { open: true, kinds: old.list.kinds | kinds },
  }));
  const isListed = event > 0 && event <= fileEvents({ state });
  return <button type="button" disabled={!isListed} title="In the list of events, beside the segments after it" onClick={show}>{title}</button>;
}

function fileEvents({ state }: Pick<ViewProps, 'state'>): number {
  return state.meta?.files[state.file]?.events ?? 0;
}

function NeighbourFact({ name, neighbour, store }: { readonly name: string; readonly neighbour: Neighbour | null; readonly store: ViewProps['store'] }) {
  const words = neighbourWords(neighbour);
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {neighbour === null || neighbour.row === NO_ROW ? words : (
          <button type="button" class="plain link" onClick={() => store.update({ selection: { kind: 'block', row: neighbour.row } })}>{words}</button>
        )}
      </dd>
    </div>
  );
}

export function Facts({ facts, children }: { readonly facts: readonly (readonly [string, string])[]; readonly children?: ComponentChildren }) {
  return (
    <dl class="details-facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
      {children}
    </dl>
  );
}

export function CloseButton({ store }: { readonly store: ViewProps['store'] }) {
  return (
    <button type="button" class="plain close" aria-label="Close the details" title="Esc" onClick={() => store.update({ selection: { kind: 'none' } })}>×</button>
  );
}
