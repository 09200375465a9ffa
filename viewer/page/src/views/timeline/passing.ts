// Tests which items of a tile match a filter. The text is matched against the frames of their
// stacks, and of the forward pass's for memory of a backward pass; all other matches are requested from the source (found_rows.ts).

import { textsOfFrame, textTest } from '../../data/text_filter';
import { NO_ROW, type BlockTile, type FileMeta, type Filter, type StackInfo } from '../../data/protocol';
import { isFiltering } from '../../state/filter';
import { textOfDtype } from '../ranges/row_filter';

/**
 * Returns 1 for each item that matches, or null if there is no filter. If `stackOf` returns null,
 * the stack is not known yet and matches.
 */
export function passingItems(
  tile: BlockTile, filter: Filter, file: FileMeta, stackOf: (stack: number) => StackInfo | null, isFound: (row: number) => boolean = () => false,
): Uint8Array | null {
  if (!isFiltering(filter)) return null;
  const matches = textMatcher(filter.text);
  const known = new Map<number, boolean>();
  const hasText = (stack: number): boolean => {
    let has = known.get(stack);
    if (has === undefined) {
      const info = stackOf(stack);
      has = info === null || info.frames.some((frame) => textsOfFrame(frame).some(matches));
      known.set(stack, has);
    }
    return has;
  };
  const roles = codesWith(filter.text, file.roles);
  const dtypes = codesWith(filter.text, file.dtypes.map(textOfDtype));
  const category = file.categories.indexOf(filter.category);
  const stream = file.streams.indexOf(filter.stream);
  const thread = file.threads.indexOf(filter.thread);
  return Uint8Array.from(tile.row, (row, i) =>
    Number(
      row !== NO_ROW &&
        (filter.category === '' || tile.category[i] === category) &&
        (filter.stream === '' || tile.stream[i] === stream) &&
        (filter.thread === '' || tile.thread[i] === thread) &&
        (filter.stack === null || tile.stack[i] === filter.stack) &&
        (filter.forward_stack === null || tile.forward_stack[i] === filter.forward_stack) &&
        (filter.key === null || tile.key[i] === filter.key) &&
        (filter.min_size === null || tile.size[i]! >= filter.min_size) &&
        (filter.max_size === null || tile.size[i]! <= filter.max_size) &&
        (filter.text === '' || roles.has(tile.role[i]!) || dtypes.has(tile.dtype[i]!) || hasText(tile.stack[i]!) ||
          (tile.forward_stack[i] !== 0 && hasText(tile.forward_stack[i]!)) || isFound(row)),
    ),
  );
}

/**
 * Returns the codes of names that contain the text, except unknown ones. A name is only part of the
 * text that an expression is matched with, so an expression has no codes.
 */
function codesWith(text: string, names: readonly string[]): ReadonlySet<number> {
  if (text === '' || text.startsWith('/')) return new Set();
  const matches = textMatcher(text);
  return new Set(names.flatMap((name, code) => (code > 0 && matches(name) ? [code] : [])));
}

/** Returns a test for a text. An invalid expression matches nothing. */
export function textMatcher(text: string): (part: string) => boolean {
  try {
    return textTest(text);
  } catch {
    return () => false;
  }
}
