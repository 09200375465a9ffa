import { expect, it } from 'vitest';
import { QuadWriter, quadsOfItems, sortByColor } from './quads';

function quads(items: readonly number[]) {
  const writer = new QuadWriter();
  for (const [i, item] of items.entries()) writer.add(item, i, i + 1, 0, 1);
  return writer.finish();
}

it('keeps many quads', () => {
  const many = quads(Array.from({ length: 5000 }, (_, i) => i));
  expect([many.count, many.item.length, many.x0[4999], many.x1[4999]]).toEqual([5000, 5000, 4999, 5000]);
});

it('sorts by colour and keeps the order within a colour', () => {
  const sorted = sortByColor(quads([0, 1, 1, 2, 3]), ['a', 'b', 'c'], [2, 0, 2, 0]);
  expect([...sorted.quads.item]).toEqual([1, 1, 3, 0, 2]);
  expect([...sorted.quads.x0]).toEqual([1, 2, 4, 0, 3]);
  expect([...sorted.begin]).toEqual([0, 3, 3, 5]);
});

it('finds the quads of each item', () => expect([...quadsOfItems(quads([0, 2, 2, 3]), 5)]).toEqual([0, 1, 1, 3, 4, 4]));
