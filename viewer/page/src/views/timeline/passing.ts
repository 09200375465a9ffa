// Which items of a tile a filter lets through. Its text is looked for in the frames of their stacks; which of
// them have it in their name or address is asked for (found_rows.ts).

import { textsOfFrame, textTest } from '../../data/text_filter';
import { NO_ROW, type BlockTile, type FileMeta, type Filter, type StackInfo } from '../../data/protocol';
import { isFiltering } from '../../state/filter';

/** 1 for each item that passes; null: there is no filter, all do. `stackOf` null: not known yet, passes. */
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
        (filter.key === null || tile.key[i] === filter.key) &&
        (filter.min_size === null || tile.size[i]! >= filter.min_size) &&
        (filter.max_size === null || tile.size[i]! <= filter.max_size) &&
        (filter.text === '' || hasText(tile.stack[i]!) || isFound(row)),
    ),
  );
}

/** A text that is no expression, and should be one, matches nothing. */
export function textMatcher(text: string): (part: string) => boolean {
  try {
    return textTest(text);
  } catch {
    return () => false;
  }
}
