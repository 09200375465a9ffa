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

/**
 * 'Only these': the filter that lets through what the row stands for; null: no filter does. Of a function
 * or a file these are all blocks through it, also those that it took by way of others.
 */
export function onlyRow(state: State, row: TableRow): Partial<State> | null {
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
    case 'function':
    case 'file':
      if (rest !== UNKNOWN) return { filter: { ...filter, text: row.name } };
      return row.stack === 0 ? { filter: { ...filter, stack: 0 } } : null;
    default:
      return null; // what a mailed file has left out
  }
}

/** What the button for it says. */
export function onlyWords(row: TableRow): string {
  const [kind, rest] = splitId(row.id);
  const isThrough = (kind === 'function' || kind === 'file') && rest !== UNKNOWN;
  return isThrough ? `Only blocks through the selected row's ${kind}` : "Only the selected row's blocks";
}

/** The row of blocks without a stack. */
const UNKNOWN = 'unknown';

/** 'N': that size; 'LOW-HIGH': sizes from LOW to HIGH. */
function sizes(range: string): { min_size: number; max_size: number } {
  const [low, high] = range.split('-');
  return { min_size: Number(low), max_size: Number(high ?? low) };
}
