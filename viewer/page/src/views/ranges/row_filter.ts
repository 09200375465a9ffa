// The filter that a row of the breakdown stands for.

import type { Filter, RangeQuery, RangeRow } from '../../data/protocol';
import { filterOfStack } from '../../state/filter';
import { NO_FILTER } from '../../state/state';
import { isByFrame, type TreeRow } from './range_tree';

const UNKNOWN = 'unknown';

/**
 * Returns the fields that match the row's blocks; for a module, function or line all blocks that
 * have it on their stack. Null if no filter does.
 */
export function filterOfRow(by: RangeQuery['by'], row: RangeRow): Partial<Filter> | null {
  if (row.id === 'omitted') return null;
  switch (by) {
    case 'category':
      return { category: row.name };
    case 'role':
      return filterOfRole(row.name);
    case 'dtype':
      return filterOfDtype(row.name);
    case 'stream':
      return { stream: row.name };
    case 'thread':
      return { thread: row.name };
    case 'stack':
      return filterOfStack(row.id);
    case 'module':
    case 'function':
    case 'line':
      if (row.name === UNKNOWN) return row.stack === 0 ? { stack: 0 } : null;
      // A Python package is a folder: its name alone is part of too many other names.
      return { text: by === 'module' && !row.name.includes('.') ? `-packages/${row.name}/` : row.name };
  }
}

/**
 * Returns the fields that match the blocks of a row and of all rows that it is in. Null if no filter
 * does, as for a function and a type of tensor, both of which are matched by the text.
 */
export function filterOfPath({ row, by, parents }: TreeRow, levels: readonly RangeQuery['by'][]): Partial<Filter> | null {
  const path = [...parents.map((parent, i) => ({ by: levels[i]!, row: parent })), { by, row }];
  const hasStack = path.some((each) => each.by === 'stack');
  const lastFrame = path.findLast((each) => isByFrame(each.by));
  let all: Partial<Filter> = {};
  for (const each of path) {
    // A line is in its function, and a function in its module; a stack says it all.
    if (isByFrame(each.by) && (hasStack || each !== lastFrame)) continue;
    const fields = filterOfRow(each.by, each.row);
    if (fields === null || Object.keys(fields).some((key) => key in all)) return null;
    all = { ...all, ...fields };
  }
  return all;
}

/** Returns the filter that matches memory that is alive for this reason; null: none does. */
export function filterOfRole(role: string): Partial<Filter> | null {
  return role === UNKNOWN ? null : { text: role };
}

/** Returns the filter that matches tensors of this type; null: none does. */
export function filterOfDtype(dtype: string): Partial<Filter> | null {
  return dtype === UNKNOWN ? null : { text: textOfDtype(dtype) };
}

/** Returns the beginning of the text of a tensor of this type; the shape follows. */
export function textOfDtype(dtype: string): string {
  return `${dtype} [`;
}

/** Returns whether the filter has all these fields. */
export function has(filter: Filter, fields: Partial<Filter>): boolean {
  return Object.entries(fields).every(([key, value]) => filter[key as keyof Filter] === value);
}

/** Returns the filter without these fields. */
export function without(filter: Filter, fields: Partial<Filter>): Filter {
  const unset = Object.fromEntries(Object.keys(fields).map((key) => [key, NO_FILTER[key as keyof Filter]]));
  return { ...filter, ...unset };
}
