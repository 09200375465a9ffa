// Finds the blocks in segments that match the filter. Held blocks are looked up with the whole
// filter. Blocks that wait for a stream are no longer held, so they are matched by the columns of
// their segment.

import type { DataSource } from '../../data/data_source';
import { NO_ROW, type Filter, type Scope, type SegmentState } from '../../data/protocol';

const PAGE = 10_000; // maximum that `find` returns at once

/** Returns all rows of a scope. */
export async function rowsOf(source: Pick<DataSource, 'find'>, scope: Scope, signal?: AbortSignal, limit = PAGE): Promise<ReadonlySet<number>> {
  const rows = new Set<number>();
  let after = NO_ROW;
  for (;;) {
    const page = await source.find(scope, after, limit, signal);
    for (const row of page.rows) rows.add(row);
    const last = page.rows.at(-1);
    if (last === undefined || rows.size >= page.total) return rows;
    after = last;
  }
}

/** Returns whether the block at an index of a segment's columns matches. */
export type PieceTest = (segment: SegmentState, index: number) => boolean;

export function pieceTest(rows: ReadonlySet<number>, filter: Filter, categories: readonly string[]): PieceTest {
  const category = categories.indexOf(filter.category);
  return (segment, index) => {
    if (segment.pending[index] !== 1) return rows.has(segment.row[index]!);
    const bytes = segment.bytes[index]!;
    return (
      (filter.category === '' || segment.category[index] === category) &&
      (filter.key === null || segment.key[index] === filter.key) &&
      (filter.min_size === null || bytes >= filter.min_size) &&
      (filter.max_size === null || bytes <= filter.max_size)
    );
  };
}
