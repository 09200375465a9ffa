// The commands that every view has: views, window, cursors, theme.

import type { Hotkey } from '../base/hotkeys';
import type { Command } from '../state/commands';
import { axesOf } from '../state/navigator';
import { notesOf } from '../state/notes';
import { cursorEvent, fileOf, laneOf } from '../state/scope';
import { NO_FILTER, type ViewName } from '../state/state';
import { formatCount } from '../base/format_bytes';
import { SAVED } from '../views/details/details_text';
import type { Page } from './page';
import { VIEW_KEYS, VIEWS } from './views';

const ZOOM = 0.7;
const PAN = 0.15;

export interface Dialogs {
  readonly help: () => void;
  readonly palette: () => void;
}

export function pageCommands(page: Page, dialogs: Dialogs): Command[] {
  return [...viewCommands(page), ...windowCommands(page), ...cursorCommands(page), ...selectionCommands(page), ...otherCommands(page, dialogs)];
}

function viewCommands({ store }: Page): Command[] {
  return Object.entries(VIEWS).map(([name, view], i) => ({
    id: `view.${name}`,
    title: `Show ${view.title}`,
    group: 'Views',
    hotkeys: VIEW_KEYS.slice(i, i + 1),
    run: () => store.update({ view: name as ViewName }),
  }));
}

function windowCommands({ store, navigator }: Page): Command[] {
  const group = 'Window';
  const hasLane = (): boolean => laneOf(store.get()) !== null;
  const command = (id: string, title: string, hotkeys: readonly Hotkey[], run: () => void): Command => ({
    id: `window.${id}`, title, group, hotkeys, run, enabled: hasLane,
  });
  return [
    command('zoom_in', 'Zoom in', ['W', '+', 'ArrowUp'], () => navigator.zoom(ZOOM)),
    command('zoom_out', 'Zoom out', ['S', '-', 'ArrowDown'], () => navigator.zoom(1 / ZOOM)),
    command('left', 'Go to earlier', ['A', 'ArrowLeft'], () => navigator.pan(-PAN)),
    command('right', 'Go to later', ['D', 'ArrowRight'], () => navigator.pan(PAN)),
    command('first', 'Go to the beginning', ['Home'], () => navigator.pan(-1e9)),
    command('last', 'Go to the end', ['End'], () => navigator.pan(1e9)),
    command('fit', 'Show the whole recording', ['0'], () => navigator.fit()),
    command('axis', 'Next axis: time, events, steps', ['X'], () => {
      const file = fileOf(store.get());
      if (file !== null) void navigator.setAxis(next(axesOf(file), navigator.axis));
    }),
  ];
}

function next<T>(values: readonly T[], value: T): T {
  return values[(values.indexOf(value) + 1) % values.length]!;
}

function cursorCommands({ store, navigator, announce }: Page): Command[] {
  const go = (event: number, words: string): void => {
    void navigator.showEvent(event);
    announce(`${words}, event ${formatCount(event)}`);
  };
  const move = (by: number): void => {
    const file = fileOf(store.get());
    if (file === null) return;
    go(Math.min(file.events, Math.max(0, cursorEvent(store.get()) + by)), 'Cursor');
  };
  const moments = (): readonly { readonly name: string; readonly event: number }[] => {
    const file = fileOf(store.get());
    if (file === null) return [];
    const notes = notesOf(store.get(), file).map(({ event, text }) => ({ event, name: text }));
    return [...file.ooms, ...file.retries, ...file.marks, ...file.snapshots, ...file.losses, ...notes].sort((a, b) => a.event - b.event);
  };
  const command = (id: string, title: string, hotkeys: readonly Hotkey[], run: () => void, enabled?: () => boolean): Command => ({
    id: `cursor.${id}`, title, group: 'Cursor', hotkeys, run, enabled: enabled ?? ((): boolean => laneOf(store.get()) !== null),
  });
  return [
    command('next', 'Next event', ['.'], () => move(1)),
    command('previous', 'Previous event', [','], () => move(-1)),
    command('peak', 'Go to the peak', ['P'], () => go(laneOf(store.get())?.peak_event ?? 0, 'Peak')),
    command('note', 'Write a note on the cursor\'s moment', ['Shift+N'], () => {
      const event = cursorEvent(store.get());
      store.update({ view: 'timeline', selection: { kind: 'instant', event } });
      go(event, 'Moment');
    }, () => {
      const file = fileOf(store.get());
      return laneOf(store.get()) !== null && file !== null && file.live === undefined;
    }),
    command('next_moment', 'Next mark, OOM, retry, snapshot, loss or note', ['N'], () => {
      const at = cursorEvent(store.get());
      const found = moments().find((moment) => moment.event > at) ?? moments()[0];
      if (found === undefined) return;
      store.update({ selection: { kind: 'instant', event: found.event } });
      go(found.event, found.name);
    }, () => moments().length > 0),
    command('base', 'Measure growth from here to the cursor', ['B'], () => {
      const event = cursorEvent(store.get());
      store.update({ base: event });
      announce(`Growth is measured from event ${formatCount(event)}`);
    }),
    command('no_base', 'Measure growth from the start', ['Shift+B'], () => store.update({ base: null }), () => store.get().base !== null),
  ];
}

function selectionCommands({ store, navigator }: Page): Command[] {
  return [
    {
      id: 'selection.clear', title: 'Clear the selection, then the filter', group: 'Selection', hotkeys: ['Escape'],
      run: () => {
        const isSelected = store.get().selection.kind !== 'none';
        store.update(isSelected ? { selection: { kind: 'none' } } : { filter: NO_FILTER });
      },
    },
    {
      id: 'selection.focus', title: 'Show the selected range', group: 'Selection', hotkeys: ['F'],
      enabled: () => store.get().selection.kind === 'range',
      run: () => {
        const { selection } = store.get();
        if (selection.kind === 'range') void navigator.showEvents(selection.from, selection.to);
      },
    },
    {
      id: 'filter.text', title: 'Filter by text', group: 'Selection', hotkeys: ['/'],
      run: () => document.querySelector<HTMLInputElement>('input[type=search]')?.focus(),
    },
    {
      id: 'filter.autograd', title: 'Show only what autograd keeps for backward passes', group: 'Selection', hotkeys: [],
      run: () => store.update((old) => ({ filter: { ...old.filter, text: SAVED } })),
    },
  ];
}

function otherCommands(page: Page, dialogs: Dialogs): Command[] {
  const { store } = page;
  return [
    { id: 'page.palette', title: 'All commands; search for functions, steps, marks, addresses', group: 'Page', hotkeys: ['Ctrl+Shift+P'], run: dialogs.palette },
    { id: 'page.help', title: 'Keys', group: 'Page', hotkeys: ['?'], run: dialogs.help },
    {
      id: 'page.theme', title: 'Switch the theme: system, light, dark', group: 'Page', hotkeys: ['T'],
      run: () => store.update((old) => ({ theme: next(['system', 'light', 'dark'] as const, old.theme) })),
    },
    {
      id: 'page.lane', title: 'Next device or heap', group: 'Page', hotkeys: ['H'],
      enabled: () => (fileOf(store.get())?.lanes.length ?? 0) > 1,
      run: () => {
        const state = store.get();
        const lanes = fileOf(state)?.lanes.map((lane) => lane.lane) ?? [];
        page.navigator.showLane(state.file, next(lanes, state.lane));
      },
    },
  ];
}
