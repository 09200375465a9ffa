// The filter that all views share.

import type { Filter } from '../data/protocol';

/** Whether there is one. */
export function isFiltering(filter: Filter): boolean {
  return Object.values(filter).some((value) => value !== '' && value !== null);
}
