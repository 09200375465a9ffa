import { expect, it } from 'vitest';
import type { Table, TableQuery, TableRow } from '../../data/protocol';
import { largestBlock } from './largest_block';

const ROW: TableRow = { id: 'block/12', name: 'GPT.forward', where: '', bytes: 64, blocks: 1, peak_bytes: 64, mean_size: 64, median_lifetime_ns: null, block: null, stack: 3, sparkline: [] };

function sourceOf(rows: readonly TableRow[], asked: TableQuery[] = []) {
  return {
    table: (query: TableQuery): Promise<Table> => {
      asked.push(query);
      return Promise.resolve({ rows, total_rows: rows.length, total_bytes: 0, total_blocks: 0 });
    },
  };
}

it('is the first row of the blocks that a category holds after the event, by bytes', async () => {
  const asked: TableQuery[] = [];
  expect(await largestBlock(sourceOf([ROW], asked), { file: 1, lane: 2 }, 'temporaries', 9)).toEqual({ row: 12, bytes: 64, name: 'GPT.forward' });
  expect(asked[0]).toMatchObject({ file: 1, lane: 2, of: 'live', to: 9, by: 'block', sort: 'bytes', descending: true, limit: 1 });
  expect(asked[0]!.filter.category).toBe('temporaries');
});

it('is null if the category holds nothing then', async () => {
  expect(await largestBlock(sourceOf([]), { file: 0, lane: 0 }, 'inputs', 1)).toBeNull();
});
