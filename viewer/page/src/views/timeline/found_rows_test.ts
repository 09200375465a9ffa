import { expect, it, vi } from 'vitest';
import { NO_ROW, type BlockQuery, type Filter } from '../../data/protocol';
import { NO_FILTER } from '../../state/state';
import { recordedSource, stacksOf } from '../../testing/recordings';
import { FoundRows } from './found_rows';
import { passingItems } from './passing';

const source = recordedSource();
const QUERY: BlockQuery = { file: 0, lane: 0, axis: 'event', from: 200, to: 600, columns: 400, layout: 'stacked', low: 0, high: 2 ** 30, rows: 512 };
const picture = {
  subject: { file: 0, lane: 0, axis: 'event', layout: 'stacked', stage: 'ready', window: 0 }, curve: await source.curve(QUERY), blocks: await source.blocks(QUERY),
} as const;
const stackOf = await stacksOf(source, picture.blocks);

/** Returns the rows of the picture that match, when all answers have come. */
async function passing(filter: Filter): Promise<number[]> {
  const { files } = await source.meta();
  return new Promise((resolve) => {
    const found = new FoundRows(source, () => {
      const passes = passingItems(picture.blocks, filter, files[0]!, stackOf, found.look(picture, filter))!;
      resolve([...picture.blocks.row].filter((_, i) => passes[i] === 1));
    });
    found.look(picture, filter);
  });
}

it('finds the blocks of the picture at an address, held before it or allocated in it', async () => {
  const rows = [...picture.blocks.row].filter((row) => row !== NO_ROW);
  const blocks = await Promise.all(rows.map((row) => source.block(0, row)));
  for (const { address } of blocks.filter((_, i) => i % 8 === 0)) {
    const isThere = blocks.map((block) => Number(block.address) <= Number(address) && Number(address) < Number(block.address) + block.size);
    expect(await passing({ ...NO_FILTER, text: address })).toEqual(rows.filter((_, i) => isThere[i]));
  }
});

it('matches what may be at an address until that is known, and nothing else', () => {
  const found = new FoundRows(source, () => undefined);
  expect(found.look(picture, { ...NO_FILTER, text: '0x7f' })(1)).toBe(true);
  expect(found.look(picture, { ...NO_FILTER, text: 'forward' })(1)).toBe(false);
  found.stop();
});

it('asks once per picture, and not for an invalid expression', async () => {
  const find = vi.spyOn(source, 'find');
  const filter = { ...NO_FILTER, text: 'weight' };
  const found = new FoundRows(source, () => undefined);
  for (let i = 0; i < 3; ++i) found.look(picture, filter);
  expect(find).toHaveBeenCalledTimes(2); // for held blocks and for allocated ones
  found.look(picture, { ...NO_FILTER, text: '/(/' });
  await Promise.resolve();
  expect(find).toHaveBeenCalledTimes(2);
});
