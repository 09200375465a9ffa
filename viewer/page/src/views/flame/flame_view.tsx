// The holders of memory as a flame graph: of the live set at a moment, of growth between two, or of
// two files. Options that affect the picture are part of the state; the active frame belongs to the
// view.

import { useMemo, useState } from 'preact/hooks';
import type { FlameQuery, FlameTree } from '../../data/protocol';
import { momentKey } from '../../state/live';
import { fileOf, scopeOf, scopeWords } from '../../state/scope';
import { words } from '../../base/words';
import type { Command } from '../../state/commands';
import type { FlameOptions } from '../../state/state';
import { Choice, Toggle } from '../../widgets/choice';
import { ScopeBar } from '../../widgets/scope_bar';
import { Answered, Empty } from '../../widgets/states';
import { useCommands } from '../../widgets/use_commands';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { copyText } from '../details/copy';
import type { View, ViewProps } from '../view';
import { FlameCanvas } from './flame_canvas';
import { categoryColor } from './flame_colors';
import { nodeOfPath, weigh } from './flame_layout';
import { describe, findMatches, frameName, frameText, matchWords } from './flame_words';
import { fromShown, otherMoment, otherWords } from './other_moment';

// Growth and allocations in a range have no counterpart in the other file.
const ONLY_HELD = 'Only memory held at the cursor can be compared with another file.';

function FlameView(props: ViewProps) {
  const { state, store, source } = props;
  const scope = scopeOf(state);
  const { inverted, folded } = state.flame;
  const isDifference = state.flame.compare && state.of === 'live';
  const other = isDifference ? otherMoment(state) : null;
  const query: FlameQuery | null = scope === null ? null : { ...scope, inverted, folded, other };
  const key = query === null ? null : keyOf({ ...query, to: momentKey(state, query.to) });
  const asked = useQuestion(key, async (signal) => fromShown(await source.flame(query!, signal)));
  const set = (change: Partial<FlameOptions>): void => store.update((old) => ({ flame: { ...old.flame, ...change } }));
  useCommands(props.commands, flameCommands(state.flame, set));
  return (
    <section class="view flame-view" aria-label="Flame graph">
      <ScopeBar state={state} store={store} />
      <div class="bar" role="group" aria-label="How it is drawn">
        <Choice
          label="Root"
          value={state.flame.icicle ? 'top' : 'bottom'}
          options={[
            ['top', 'on top (icicle)'],
            ['bottom', 'at the bottom (flame)'],
          ]}
          onChoose={(root) => set({ icicle: root === 'top' })}
        />
        <Toggle label="Inverted: callees first" on={inverted} onToggle={(on) => set({ inverted: on, focus: 0 })} />
        <Toggle label="Fold noise" on={folded} onToggle={(on) => set({ folded: on, focus: 0 })} />
        <Toggle label="Coloured by category" on={state.flame.byCategory} onToggle={(on) => set({ byCategory: on })} disabled={isDifference || state.of === 'growth'} />
        {(state.meta?.files.length ?? 0) > 1 && (
          <Toggle
            label="Difference to the other file"
            on={isDifference}
            disabled={state.of !== 'live'}
            onToggle={(on) => set({ compare: on })}
          />
        )}
        {state.flame.compare && <span class="muted">{isDifference ? otherWords(state, other) : ONLY_HELD}</span>}
        <input
          type="search"
          aria-label="Find frames"
          placeholder="Find frames"
          value={state.flame.search}
          onInput={(event) => set({ search: event.currentTarget.value })}
        />
      </div>
      <Answered asked={asked} what="Adding up stacks…">
        {(tree) => <Flame {...props} tree={tree} set={set} />}
      </Answered>
    </section>
  );
}

function flameCommands(options: FlameOptions, set: (change: Partial<FlameOptions>) => void): Command[] {
  const group = 'Flame graph';
  return [
    { id: 'flame.invert', title: 'Callees first, or callers', group, hotkeys: ['I'], run: () => set({ inverted: !options.inverted, focus: 0 }) },
    { id: 'flame.root', title: 'Root on top, or at the bottom', group, hotkeys: ['O'], run: () => set({ icicle: !options.icicle }) },
    { id: 'flame.fold', title: 'Fold noise, or show it', group, hotkeys: ['J'], run: () => set({ folded: !options.folded, focus: 0 }) },
    { id: 'flame.category', title: 'Colour by category, or by kind of frame', group, hotkeys: ['C'], run: () => set({ byCategory: !options.byCategory }) },
    { id: 'flame.whole', title: 'Whole graph', group, hotkeys: ['Shift+O'], run: () => set({ focus: 0 }), enabled: () => options.focus !== 0 },
  ];
}

interface FlameProps extends ViewProps {
  readonly tree: FlameTree;
  readonly set: (change: Partial<FlameOptions>) => void;
}

function Flame({ state, store, announce, tree, set }: FlameProps) {
  const weighed = useMemo(() => weigh(tree), [tree]);
  const { search, icicle } = state.flame;
  const matches = useMemo(() => findMatches(tree, search), [tree, search]);
  const focus = nodeOfPath(weighed, state.flame.focus);
  const [activePath, setActivePath] = useState(0);
  const active = nodeOfPath(weighed, activePath);
  const isGrowth = state.of === 'growth';
  const categories = state.flame.byCategory && !isGrowth && tree.category.length > 0 ? (fileOf(state)?.categories ?? null) : null;
  if (tree.parent.length <= 1) {
    return (
      <Empty title="No memory here">
        <p>No memory that matches the filter is {scopeWords(state)}.</p>
      </Empty>
    );
  }
  const name = frameName(tree, active);
  const copy = (text: string): void => void copyText(text).then((isDone) => announce(isDone ? 'Copied' : 'The browser did not let the page copy'));
  return (
    <>
      <p class={search !== '' && matches === null ? 'failed' : 'muted'} role="status">
        {matchWords(tree, search, matches)}
      </p>
      {categories !== null && <CategoryKey tree={tree} categories={categories} />}
      <div class="scroll">
        <FlameCanvas
          weighed={weighed}
          isGrowth={isGrowth}
          icicle={icicle}
          focus={focus}
          active={active}
          matches={matches}
          categories={categories}
          label={`Flame graph: ${describe(tree, 0, isGrowth)}`}
          onActive={(node) => setActivePath(node === 0 ? 0 : weighed.path[node]!)}
          onFocus={(node) => set({ focus: node === 0 ? 0 : weighed.path[node]! })}
        />
      </div>
      <div class="bar flame-active" role="group" aria-label="Frame">
        <output aria-live="polite">{describe(tree, active, isGrowth, categories)}</output>
        <button type="button" disabled={active === focus} onClick={() => set({ focus: weighed.path[active]! })}>
          Zoom to it
        </button>
        <button type="button" disabled={focus === 0} onClick={() => set({ focus: 0 })}>
          Whole graph
        </button>
        <button
          type="button"
          disabled={active === 0}
          onClick={() => store.update((old) => ({ filter: { ...old.filter, text: name.function } }))}
        >
          Only blocks through this frame
        </button>
        <button type="button" onClick={() => copy(frameText(tree, active, isGrowth))}>
          Copy
        </button>
      </div>
    </>
  );
}

function CategoryKey({ tree, categories }: { readonly tree: FlameTree; readonly categories: readonly string[] }) {
  const shown = [...new Set(tree.category)].flatMap((code) => categories[code] ?? []);
  return (
    <p class="legend" aria-label="Colours">
      {shown.map((name) => (
        <span key={name} class="swatch-entry">
          <span class="legend-swatch" aria-hidden="true" style={{ background: categoryColor(name, 1) }} /> {words(name)}
        </span>
      ))}
      <span class="muted">the category with most of a frame's bytes; the smaller its share, the paler</span>
    </p>
  );
}

export const FLAME_VIEW: View = { title: 'Flame graph', component: FlameView };
