// The breakdown as a tree: the rows of a table, and in each row that is opened those of the next
// level. All tables of a tree are of the same range.

import type { RangeQuery, RangeRow, RangeTable } from '../../data/protocol';

export type By = RangeQuery['by'];
export type AskRange = (query: RangeQuery) => Promise<RangeTable>;

/** A row with the rows that it is in, from the outermost. */
export interface TreeRow {
  readonly row: RangeRow;
  readonly by: By;
  readonly parents: readonly RangeRow[];
  readonly canOpen: boolean;
  readonly isOpen: boolean;
}

export interface Tree {
  readonly top: RangeTable;
  /** The rows in opened rows, by idOf. */
  readonly inside: ReadonlyMap<string, RangeTable>;
}

const PAGE = 500; // rows; the most that is answered at once

/** Returns what identifies a row in a tree: the ids of the rows that it is in, and its own. */
export function idOf(parents: readonly RangeRow[], row: RangeRow): string {
  return JSON.stringify([...parents, row].map(({ id }) => id));
}

/**
 * Asks for the rows that `open` needs. `isWhole`: all rows, otherwise the first ones of each table.
 */
export async function loadTree(ask: AskRange, query: Omit<RangeQuery, 'by' | 'within' | 'offset' | 'limit'>, levels: readonly By[], open: ReadonlySet<string>, isWhole: boolean): Promise<Tree> {
  const inside = new Map<string, RangeTable>();
  const tableOf = async (within: readonly string[]): Promise<RangeTable> => {
    const asked = { ...query, within, by: levels[within.length]!, limit: PAGE };
    const first = await ask({ ...asked, offset: 0 });
    const rows = [...first.rows];
    while (isWhole && rows.length < first.total_rows) {
      const next = await ask({ ...asked, offset: rows.length });
      if (next.rows.length === 0) break; // a live recording has moved on
      rows.push(...next.rows);
    }
    return { ...first, rows };
  };
  const load = async (parents: readonly RangeRow[], table: RangeTable): Promise<void> => {
    if (parents.length + 1 >= levels.length) return;
    await Promise.all(table.rows.filter((row) => open.has(idOf(parents, row))).map(async (row) => {
      const path = [...parents, row];
      const found = await tableOf(path.map(({ id }) => id));
      inside.set(idOf(parents, row), found);
      await load(path, found);
    }));
  };
  const top = await tableOf([]);
  await load([], top);
  return { top, inside };
}

/** Returns the rows from top to bottom. */
export function rowsOf({ top, inside }: Tree, levels: readonly By[], open: ReadonlySet<string>): readonly TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (table: RangeTable, parents: readonly RangeRow[]): void => {
    const by = levels[parents.length]!;
    for (const row of table.rows) {
      const id = idOf(parents, row);
      const canOpen = parents.length + 1 < levels.length && row.id !== 'omitted';
      const isOpen = canOpen && open.has(id);
      rows.push({ row, by, parents, canOpen, isOpen });
      const found = isOpen ? inside.get(id) : undefined;
      if (found !== undefined) add(found, [...parents, row]);
    }
  };
  add(top, []);
  return rows;
}

/** Returns the open rows after one was opened or closed. */
export function toggled(open: ReadonlySet<string>, { row, parents }: TreeRow): ReadonlySet<string> {
  const id = idOf(parents, row);
  const next = new Set(open);
  if (!next.delete(id)) next.add(id);
  return next;
}

/** Returns the levels with one added, left out, or moved by a place. */
export function changedLevels(levels: readonly By[], by: By, change: 'toggle' | 'up' | 'down'): readonly By[] {
  const at = levels.indexOf(by);
  if (change === 'toggle') {
    if (at < 0) return [...levels, by];
    return levels.length === 1 ? levels : levels.filter((each) => each !== by);
  }
  const to = change === 'up' ? at - 1 : at + 1;
  if (at < 0 || to < 0 || to >= levels.length) return levels;
  return levels.with(at, levels[to]!).with(to, by);
}

/** Returns whether rows are frames of stacks. */
export function isByFrame(by: By): boolean {
  return by === 'module' || by === 'function' || by === 'line';
}

/** Returns whether rows count frames, whose columns but one are what they allocate themselves. */
export function hasFrames(rows: readonly TreeRow[]): boolean {
  return rows.some(({ row }) => row.inclusive !== null);
}
