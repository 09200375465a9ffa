// The largest block of a category at a moment. If blocks are too small or too short to be drawn
// individually, a click selects it, and the tooltip names it.

import type { DataSource } from '../../data/data_source';
import { NO_ROW, type TableRow } from '../../data/protocol';
import { NO_FILTER, type State } from '../../state/state';

export interface LargestBlock {
  readonly row: number;
  readonly bytes: number;
  readonly name: string; // the label of its call site
}

/** Returns null if the category holds nothing after the event. */
export async function largestBlock(source: Pick<DataSource, 'table'>, { file, lane }: Pick<State, 'file' | 'lane'>, category: string, event: number, signal?: AbortSignal): Promise<LargestBlock | null> {
  const { rows } = await source.table(
    { file, lane, filter: { ...NO_FILTER, category }, of: 'live', from: 0, to: event, by: 'block', sort: 'bytes', descending: true, offset: 0, limit: 1, sparkline: 0 },
    signal,
  );
  return rows[0] === undefined ? null : blockOf(rows[0]);
}

function blockOf({ id, bytes, name }: TableRow): LargestBlock | null {
  const row = Number(id.replace('block/', ''));
  return Number.isNaN(row) || row === NO_ROW ? null : { row, bytes, name };
}
