// Selects the rows of a comparison that match a filter. A row contains all blocks of a stack, so
// fields that differ from block to block (stream, thread, size, address, name) cannot select rows.

import type { Json } from '../../base/json';
import type { DataSource } from '../../data/data_source';
import type { Filter, Frame } from '../../data/protocol';
import { textsOfFrame } from '../../data/text_filter';
import { stackNumber } from '../answers/page';
import { textMatcher } from '../timeline/passing';

export type Side = 'base' | 'new';
export type RowTest = (row: Json) => boolean;

/** Keys of call sites, indexed by placeOfRow(). */
export type Keys = ReadonlyMap<string, number>;

/**
 * Returns a test for rows, or null if the filter matches all rows. `side` is the side whose stack
 * numbers the filter uses. `keys` are the keys known so far; a row whose key is not known passes.
 */
export function rowTest(filter: Filter, side: Side, keys: Keys): RowTest | null {
  const tests: RowTest[] = [];
  const { text, category, stack, key } = filter;
  if (text !== '') {
    const fits = textMatcher(text);
    tests.push((row) => row.list('frames').some((frame) => textsOfFrame(frameOf(frame)).some(fits)));
  }
  if (category !== '') tests.push((row) => plain(row.text('category')) === plain(category));
  if (stack !== null) tests.push((row) => stackNumber(row.text(`${side}_id`)) === stack);
  if (key !== null) tests.push((row) => (keys.get(placeOfRow(row)) ?? key) === key);
  return tests.length === 0 ? null : (row) => tests.every((test) => test(row));
}

/** Describes the effect of the filter on rows and chart. */
export function filterWords(filter: Filter): string {
  const { text, category, stack, key } = filter;
  const choosesRows = text !== '' || category !== '' || stack !== null || key !== null;
  const { stream, thread, min_size: min, max_size: max } = filter;
  const ofBlocks = [
    ...(stream === '' ? [] : ['stream']),
    ...(thread === '' ? [] : ['thread']),
    ...(min === null && max === null ? [] : ['size']),
  ];
  return [
    choosesRows ? 'The rows match the filter; the chart shows all memory.' : 'Rows and chart show all memory.',
    ...(ofBlocks.length === 0 ? [] : [`A row contains all blocks of a stack, regardless of ${ofBlocks.join(' and ')}.`]),
  ].join(' ');
}

/** Returns an id of a row's stack: in the new recording, or in the base if only the base has it. */
export function placeOfRow(row: Json): string {
  const side = stackNumber(row.text('new_id')) === null ? 'base' : 'new';
  return `${side}/${stackNumber(row.text(`${side}_id`)) ?? ''}`;
}

/** Returns the keys of the rows' call sites. `fileOf` has the file index of each side. */
export async function keysOf(json: Json, source: Pick<DataSource, 'stacks'>, fileOf: Readonly<Record<Side, number>>, signal: AbortSignal): Promise<Keys> {
  const places = new Set(json.list('devices').flatMap((device) => device.list('rows').map(placeOfRow)));
  const ofSide = async (side: Side): Promise<(readonly [string, number])[]> => {
    const ids = [...places].filter((place) => place.startsWith(`${side}/`) && !place.endsWith('/')).map((place) => Number(place.slice(side.length + 1)));
    if (ids.length === 0) return [];
    return (await source.stacks(fileOf[side], ids, signal)).map(({ stack, key }) => [`${side}/${stack}`, key] as const);
  };
  return new Map((await Promise.all([ofSide('base'), ofSide('new')])).flat());
}

function frameOf(frame: Json): Frame {
  return {
    function: frame.text('function'), file: frame.text('file'), line: frame.numberOrNull('line') ?? 0, library: frame.text('module'),
    kind: frame.text('language') === 'python' ? 'python' : 'native',
  };
}

function plain(category: string): string {
  return category.replaceAll(' ', '_');
}
