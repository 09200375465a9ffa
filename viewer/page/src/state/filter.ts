// The filter that all views share.

import type { Filter } from '../data/protocol';

/** Returns whether any field is set. */
export function isFiltering(filter: Filter): boolean {
  return Object.values(filter).some((value) => value !== '' && value !== null);
}

/** `id`: "stack/7"; of memory of a backward pass "stack/7+9", with the stack of its forward call. */
export function filterOfStack(id: string): Pick<Filter, 'stack' | 'forward_stack'> {
  const [stack, forward] = id.replace('stack/', '').split('+');
  return { stack: Number(stack), forward_stack: forward === undefined ? null : Number(forward) };
}

/** Returns the filter without what has a meaning in one recording only. */
export function withoutStacks(filter: Filter): Filter {
  return { ...filter, stack: null, forward_stack: null };
}
