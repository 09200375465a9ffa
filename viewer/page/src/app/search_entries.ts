// What the command palette finds besides commands: moments and steps of the recording, ids and
// addresses that were typed, and functions and lines on the stacks of its blocks.

import { formatBytes, formatCount } from '../base/format_bytes';
import { words } from '../base/words';
import type { DataSource } from '../data/data_source';
import { NO_ROW, type FileMeta, type InstantMeta, type RangeQuery } from '../data/protocol';
import type { Navigator } from '../state/navigator';
import { notesOf } from '../state/notes';
import { cursorEvent, fileOf } from '../state/scope';
import { NO_FILTER, type State } from '../state/state';
import type { Store } from '../state/store';

export interface Entry {
  readonly id: string;
  readonly kind: string; // 'step', 'function': shown before the title
  readonly title: string;
  readonly run: () => void;
}

export interface Places {
  readonly store: Store;
  readonly source: DataSource;
  readonly navigator: Navigator;
}

const MOST_OF_A_KIND = 6;

/** Returns what an id names. */
export function idEntries(query: string, places: Places): Entry[] {
  const file = fileOf(places.store.get());
  const wanted = query.trim().toLowerCase();
  return file === null || wanted === '' ? [] : entriesOfIds(wanted, file, places);
}

/** Returns the moments and ranges of the recording with such a name, or whose kind is called so. */
export function momentEntries(query: string, { store, navigator }: Places): Entry[] {
  const file = fileOf(store.get());
  const wanted = query.trim().toLowerCase();
  if (file === null || wanted === '') return [];
  const isWanted = (kind: string, name: string): boolean => `${kind} ${name}`.toLowerCase().includes(wanted);
  const of = (kind: string, instants: readonly InstantMeta[]): Entry[] =>
    instants.filter(({ name }) => isWanted(kind, name)).slice(0, MOST_OF_A_KIND).map((instant, i) => ({
      id: `${kind.replaceAll(' ', '-')}-${i}`, kind, title: `${instant.name === '' ? '' : `${instant.name}, `}event ${formatCount(instant.event)}`,
      run: () => {
        store.update({ selection: { kind: 'instant', event: instant.event } });
        void navigator.showEvent(instant.event);
      },
    }));
  return [
    ...of('note', notesOf(store.get(), file).map(({ event, ns, text }) => ({ event, ns, name: text }))), ...of('out of memory', file.ooms), ...of('mark', file.marks), ...of('snapshot', file.snapshots), ...of('retry', file.retries),
    ...file.ranges.filter(({ name }) => isWanted('range', name)).slice(0, MOST_OF_A_KIND).map((span, i) => ({
      id: `range-${i}`, kind: 'range', title: `${span.name}, events ${formatCount(span.begin)} to ${formatCount(span.end)}`,
      run: () => void navigator.showEvents(span.begin, span.end),
    })),
  ];
}

/** 'step/3', 'stack/7', 'block/12', 'event/400', 'category/activations'; a number alone may be several of them. */
function entriesOfIds(wanted: string, file: FileMeta, { store, navigator }: Places): Entry[] {
  const entries: Entry[] = [];
  const category = /^category\/(.+)$/.exec(wanted)?.[1];
  for (const name of file.categories) {
    if (category === undefined || (name !== category && words(name) !== category)) continue;
    entries.push({ id: `category-${name}`, kind: 'category', title: words(name), run: () => store.update((old) => ({ filter: { ...old.filter, category: name } })) });
  }
  const [, kind = '', digits] = /^(?:(step|stack|block|event)[/ ])?#?([\d,]+)$/.exec(wanted) ?? [];
  if (digits === undefined) return entries;
  const number = Number(digits.replaceAll(',', ''));
  const is = (one: string): boolean => kind === '' || kind === one;
  const begin = file.steps.begin[number - 1];
  if (is('step') && begin !== undefined) {
    entries.push({ id: 'id-step', kind: 'step', title: `step ${formatCount(number)}`, run: () => void navigator.showEvents(begin, file.steps.end[number - 1]!) });
  }
  if (is('event') && number <= file.events) entries.push({ id: 'id-event', kind: 'event', title: `after event ${formatCount(number)}`, run: () => void navigator.showEvent(number) });
  if (kind === 'stack') entries.push({ id: 'id-stack', kind: 'stack', title: `stack/${number}`, run: () => store.update({ selection: { kind: 'stack', stack: number } }) });
  if (kind === 'block') entries.push({ id: 'id-block', kind: 'block', title: `block/${number}`, run: () => store.update({ selection: { kind: 'block', row: number } }) });
  return entries;
}

/** Returns what only the source knows: functions, lines, and the blocks at an address. */
export async function askedEntries(query: string, places: Places, signal: AbortSignal): Promise<readonly Entry[]> {
  const text = query.trim();
  const state = places.store.get();
  const file = fileOf(state);
  if (file === null || text.length < 2) return [];
  if (/^0x[0-9a-f]+$/i.test(text)) return blocksAt(text, file, state, places, signal);
  const found = await Promise.all((['function', 'line', 'module'] as const).map((by) => rowsNamed(by, text, file, state, places, signal)));
  return found.flat();
}

async function rowsNamed(by: 'function' | 'line' | 'module', text: string, file: FileMeta, { lane }: State, { store, source }: Places, signal: AbortSignal): Promise<Entry[]> {
  const query: RangeQuery = {
    file: file.file, lane, filter: { ...NO_FILTER, text }, from: 0, to: file.events, box: null, other: null, within: [], by, folded: false, sort: 'inclusive', side: 'this', descending: true, offset: 0, limit: 500,
  };
  const { rows } = await source.range(query, signal);
  return rows
    .filter(({ name, id }) => id !== 'omitted' && name.toLowerCase().includes(text.toLowerCase()))
    .slice(0, MOST_OF_A_KIND)
    .map(({ name, inclusive }) => ({
      id: `${by}-${name}`, kind: by, title: `${name}, ${formatBytes(inclusive ?? 0)} at the peak`,
      run: () => store.update((old) => ({ filter: { ...old.filter, text: name } })),
    }));
}

async function blocksAt(text: string, file: FileMeta, state: State, { store, source, navigator }: Places, signal: AbortSignal): Promise<Entry[]> {
  const filter = { ...NO_FILTER, text };
  const scope = { file: file.file, lane: state.lane, filter };
  const { rows, birth, death, size } = await source.find({ ...scope, of: 'born', from: 0, to: file.events }, NO_ROW, 500, signal);
  const at = cursorEvent(state);
  const isHeld = (i: number): boolean => birth[i]! <= at && at < death[i]!;
  const order = [...rows.keys()].sort((a, b) => Number(isHeld(b)) - Number(isHeld(a)) || a - b).slice(0, MOST_OF_A_KIND);
  return order.map((i) => ({
    id: `address-${rows[i]!}`, kind: 'address', title: `block of ${formatBytes(size[i]!)} from event ${formatCount(birth[i]!)}${isHeld(i) ? ', held at the cursor' : ''}`,
    run: () => {
      store.update({ selection: { kind: 'block', row: rows[i]! } });
      if (!isHeld(i)) void navigator.showEvent(birth[i]!);
    },
  }));
}
