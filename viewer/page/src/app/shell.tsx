// The frame around all views: the recording on top, one view in the middle, details below.

import { useEffect, useState } from 'preact/hooks';
import { plural } from '../base/plural';
import type { AnswerName, FileMeta, FileProgress } from '../data/protocol';
import { fileOf, laneOf, titleOfFile } from '../state/scope';
import type { State, ViewName } from '../state/state';
import { Details } from '../views/details/details';
import { Minimap } from '../views/minimap/minimap';
import type { View, ViewProps } from '../views/view';
import { findingOf } from '../views/answers/findings';
import { FilterBar } from '../widgets/filter_bar';
import { Empty, Failed } from '../widgets/states';
import { useAnswers, type Answers } from '../widgets/use_answers';
import { useMedia } from '../widgets/use_media';
import { Palette } from './command_palette';
import { Help } from './dialogs';
import { LiveLine, LostLine } from './live_line';
import { LoadingPage } from './loading_page';
import { isLive, liveCommands } from './live_page';
import { Drawer } from './drawer';
import { DroppedFiles, useDroppedFiles } from './dropped';
import type { Page } from './page';
import { pageCommands } from './page_commands';
import { Badge } from './badge';
import { VIEW_KEYS, VIEWS } from './views';

type Dialog = 'none' | 'help' | 'palette';

export function Shell({ page }: { readonly page: Page }) {
  const [state, setState] = useState(page.store.get());
  const [dialog, setDialog] = useState<Dialog>('none');
  const [dropped, setDropped] = useState<readonly string[]>([]);
  useDroppedFiles(setDropped);
  useEffect(() => {
    setState(page.store.get());
    return page.store.subscribe(setState);
  }, [page]);
  useEffect(
    () => page.commands.register(pageCommands(page, { help: () => setDialog('help'), palette: () => setDialog('palette') })),
    [page],
  );
  const hasLive = isLive(state);
  useEffect(() => (hasLive ? page.commands.register(liveCommands(page.store, page.navigator, page.announce)) : undefined), [page, hasLive]);
  const close = (): void => setDialog('none');
  const { store, source, commands, navigator, announce } = page;
  const answers = useAnswers(state, source);
  const title = titleOf(state);
  useEffect(() => {
    document.title = title;
  }, [title]);
  const props: ViewProps = { state, store, source, commands, navigator, announce, answers };
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>Go to the view</a>
      <TopBar page={page} state={state} answers={answers} onHelp={() => setDialog('help')} onPalette={() => setDialog('palette')} />
      <section class="bar subject" aria-label="Recording and filter">
        <FileChoice page={page} state={state} />
        {laneOf(state) !== null && <FilterBar state={state} store={store} source={source} />}
      </section>
      <LostLine state={state} />
      <LiveLine state={state} onFollow={() => void page.commands.run('live.follow')} />
      {laneOf(state) === null ? <NoLane page={page} state={state} /> : <Loaded props={props} />}
      <p id="announcements" class="visually-hidden" role="status" aria-live="polite" />
      {dialog === 'help' && <Help commands={commands} onClose={close} />}
      {dialog === 'palette' && <Palette commands={commands} places={page} onClose={close} />}
      {dropped.length > 0 && (
        <DroppedFiles
          key={dropped.join('\n')} names={dropped} shown={state.meta?.origin === 'server' ? fileOf(state)?.path ?? '' : ''}
          announce={announce} onClose={() => setDropped([])}
        />
      )}
    </>
  );
}

function Loaded({ props }: { readonly props: ViewProps }) {
  const { state } = props;
  const view: View | undefined = VIEWS[state.view];
  const Component = view?.component;
  const isBeside = useMedia(LOW_AND_WIDE) && hasRoomBeside(state);
  return (
    <>
      <section class="whole" aria-label="Whole recording">
        <ProgressLine state={state} />
        <LacksLine lacks={fileOf(state)?.lacks ?? []} />
        <Minimap {...props} />
      </section>
      <div class={isBeside ? 'work beside' : 'work'}>
        <main id="main" tabIndex={-1} aria-label={view?.title ?? 'View'}>
          {Component === undefined ? <Empty title="There is no such view." /> : <Component {...props} />}
        </main>
        {hasDrawer(state) && (
          <Drawer isBeside={isBeside}>
            <Details {...props} />
          </Drawer>
        )}
      </div>
    </>
  );
}

/** Returns what the browser's tab shows: 'run.gmt · Leaks · gpumemtrace'. */
export function titleOf(state: State): string {
  const file = fileOf(state);
  return [...(file === null ? [] : [titleOfFile(file), VIEWS[state.view]?.title ?? '']), 'gpumemtrace'].join(' · ');
}

// The breakdown beside the timeline describes a selected range.
function hasDrawer({ selection, view, breakdown }: State): boolean {
  if (selection.kind === 'range' && view === 'timeline' && breakdown.open) return false;
  return selection.kind !== 'none';
}

// A window in which details at the bottom leave a timeline too little height.
const LOW_AND_WIDE = '(max-height: 859px) and (min-width: 1100px)';

// The other views need the width, and so does the breakdown beside the timeline.
function hasRoomBeside({ view, breakdown }: State): boolean {
  return view === 'timeline' && !breakdown.open;
}

interface TopBarProps {
  readonly page: Page;
  readonly state: State;
  readonly answers: Answers;
  readonly onHelp: () => void;
  readonly onPalette: () => void;
}

function TopBar({ page, state, answers, onHelp, onPalette }: TopBarProps) {
  return (
    <header class="top">
      <h1>gpumemtrace</h1>
      <nav aria-label="Views">
        {Object.entries(VIEWS).map(([name, view], i) => {
          const answer = answers.of[name as AnswerName];
          const finding = answer === undefined ? null : findingOf(answer, fileOf(state), answers.of.oom);
          return (
            <a
              key={name} href={`#v=1&view=${name}`} aria-current={state.view === name ? 'page' : undefined}
              title={`${view.title} (${VIEW_KEYS[i] ?? ''})${finding === null ? '' : `: ${finding.sentence}`}`}
              onClick={(event) => {
                event.preventDefault();
                page.store.update({ view: name as ViewName });
              }}
            >
              {view.title}
              {finding !== null && <Badge finding={finding} />}
            </a>
          );
        })}
      </nav>
      <button type="button" onClick={onPalette} title="All commands, and search (Ctrl + Shift + P)">Commands</button>
      <button type="button" onClick={onHelp} title="Keys (?)" aria-label="Keys">?</button>
      <select
        aria-label="Theme" value={state.theme}
        onChange={(event) => page.store.update({ theme: event.currentTarget.value as State['theme'] })}
      >
        <option value="system">System theme</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </header>
  );
}

function FileChoice({ page, state }: { readonly page: Page; readonly state: State }) {
  const files = state.meta?.files ?? [];
  const file = fileOf(state);
  return (
    <>
      {files.length > 1 ? (
        <select
          aria-label="Recording" value={state.file}
          onChange={(event) => {
            const chosen = Number(event.currentTarget.value);
            page.navigator.showLane(chosen, files.find((each) => each.file === chosen)?.lanes[0]?.lane ?? 0);
          }}
        >
          {files.map((each) => <option key={each.file} value={each.file}>{titleOfFile(each)}</option>)}
        </select>
      ) : (
        <span class="file" title={file?.path}>{file === null ? '' : titleOfFile(file)}</span>
      )}
      {file !== null && file.lanes.length > 0 && (
        <select
          aria-label="Memory" value={state.lane} title="Device and heap (H)"
          onChange={(event) => page.navigator.showLane(state.file, Number(event.currentTarget.value))}
        >
          {file.lanes.map((lane) => <option key={lane.lane} value={lane.lane}>{lane.label}</option>)}
        </select>
      )}
    </>
  );
}

function progressOf(state: State): FileProgress | null {
  return state.progress?.files.find((file) => file.file === state.file) ?? null;
}

// Shown when enough is loaded to look at, and more is to come.
function ProgressLine({ state }: { readonly state: State }) {
  const progress = progressOf(state);
  const omitted = fileOf(state)?.omitted;
  if (progress === null || progress.state === 'ready') {
    return omitted === null || omitted === undefined ? null : <OmittedLine omitted={omitted} />;
  }
  if (progress.state === 'failed') return <Failed message={progress.error} />;
  return (
    <p class="progress" role="status">
      <progress value={progress.fraction} max={1} aria-label={progress.what} /> {progress.what}
    </p>
  );
}

// What a recording lacks concerns every view: a cut or damaged one looks like a whole one.
function LacksLine({ lacks }: { readonly lacks: readonly string[] }) {
  const [first, ...more] = lacks;
  if (first === undefined) return null;
  if (more.length === 0) return <p class="progress lacks" role="status">{first}</p>;
  return (
    <details class="progress lacks">
      <summary>{first} {`And ${plural(more.length, 'more note')}.`}</summary>
      <ul>{more.map((lack) => <li key={lack}>{lack}</li>)}</ul>
    </details>
  );
}

function OmittedLine({ omitted }: { readonly omitted: NonNullable<FileMeta['omitted']> }) {
  return (
    <p class="progress">
      {`To limit its size, this file leaves out ${omitted.blocks.toLocaleString('en')} blocks smaller than ${omitted.smaller_than.toLocaleString('en')} bytes; curves and totals include them.`}
    </p>
  );
}

function NoLane({ page, state }: { readonly page: Page; readonly state: State }) {
  const progress = progressOf(state);
  if (page.failure !== '') {
    return (
      <main id="main" tabIndex={-1}>
        <Failed message={page.failure} />
        <button type="button" onClick={() => page.loadMeta()}>Try again</button>
      </main>
    );
  }
  if (progress?.state === 'failed') {
    return <main id="main" tabIndex={-1}><Failed message={progress.error} /></main>;
  }
  if (progress?.live !== undefined && progress.state === 'ready' && progress.live.state !== 'ended') {
    return (
      <main id="main" tabIndex={-1}>
        <Empty title="Nothing allocated yet.">
          <p>{progress.live.name} is being recorded, and holds no GPU or pinned host memory yet. This page updates as soon as it does.</p>
        </Empty>
      </main>
    );
  }
  if (state.meta !== null && (progress === null || progress.state === 'ready')) {
    return (
      <main id="main" tabIndex={-1}>
        <Empty title="No memory was allocated in this recording.">
          <p>The process allocated no GPU or pinned host memory while it was recorded. No data leaves this machine.</p>
        </Empty>
      </main>
    );
  }
  return <LoadingPage progress={progress} />;
}
