// Applies a row of the table to the state, so that every view shows its blocks.

import type { TableRow } from '../../data/protocol';
import { filterOfStack } from '../../state/filter';
import type { Selection, State } from '../../state/state';

/** Splits 'stack/7' into ['stack', '7']; the rest may contain slashes. */
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
 * Returns the filter for 'Only these', which matches what the row contains, or null if there is
 * none. For a function or a file it matches all blocks that have it anywhere in their stack.
 */
export function onlyRow(state: State, row: TableRow): Partial<State> | null {
  const [kind, rest] = splitId(row.id);
  const { filter } = state;
  switch (kind) {
    case 'stack':
      return { filter: { ...filter, ...filterOfStack(row.id) } };
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
      return null; // blocks that a standalone file has left out
  }
}

/** Returns the label of the button for it. */
export function onlyWords(row: TableRow): string {
  const [kind, rest] = splitId(row.id);
  const isThrough = (kind === 'function' || kind === 'file') && rest !== UNKNOWN;
  return isThrough ? `Only blocks through the selected row's ${kind}` : "Only the selected row's blocks";
}

/** The id of the row of blocks without a stack. */
const UNKNOWN = 'unknown';

/** Parses 'N', one size, or 'LOW-HIGH', sizes from LOW to HIGH. */
function sizes(range: string): { min_size: number; max_size: number } {
  const [low, high] = range.split('-');
  return { min_size: Number(low), max_size: Number(high ?? low) };
}
