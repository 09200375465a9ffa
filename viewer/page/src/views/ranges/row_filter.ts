// The filter that a row of the breakdown stands for.

import type { Filter, RangeQuery, RangeRow } from '../../data/protocol';
import { filterOfStack } from '../../state/filter';
import { NO_FILTER } from '../../state/state';

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
