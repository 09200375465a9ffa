// The filter that all views share.

import type { Filter } from '../data/protocol';

/** Returns whether any field is set. */
export function isFiltering(filter: Filter): boolean {
  return Object.values(filter).some((value) => value !== '' && value !== null);
}
