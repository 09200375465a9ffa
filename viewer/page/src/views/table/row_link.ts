// What opening a row of the table does to the state: its blocks become what every view shows.

import type { TableRow } from '../../data/protocol';
import type { Selection, State } from '../../state/state';

/** 'stack/7' is ['stack', '7']; the rest may hold slashes. */
export function splitId(id: string): readonly [string, string] {
  const slash = id.indexOf('/');
  return slash < 0 ? [id, ''] : [id.slice(0, slash), id.slice(slash + 1)];
}

export function selectionOf(row: TableRow): Selection {
  const [kind, rest] = splitId(row.id);
  if (kind === 'block') return { kind: 'block', row: Number(rest) };
  return row.stack > 0 ? { kind: 'stack', stack: row.stack } : { kind: 'none' };
}

/** 'Only these': the filter that lets through the row's blocks and no others. */
export function onlyRow(state: State, row: TableRow): Partial<State> {
  const [kind, rest] = splitId(row.id);
  const { filter } = state;
  switch (kind) {
    case 'stack':
      return { filter: { ...filter, stack: Number(rest) } };
    case 'category':
      return { filter: { ...filter, category: row.name } };
    case 'stream':
      return { filter: { ...filter, stream: row.name } };
    case 'thread':
      return { filter: { ...filter, thread: row.name } };
    case 'size':
      return { filter: { ...filter, ...sizes(rest) } };
    case 'block':
      return { selection: { kind: 'block', row: Number(rest) } };
    default:
      return { filter: { ...filter, text: row.name } };
  }
}

/** 'N': that size; 'LOW-HIGH': sizes from LOW to HIGH. */
function sizes(range: string): { min_size: number; max_size: number } {
  const [low, high] = range.split('-');
  return { min_size: Number(low), max_size: Number(high ?? low) };
}
