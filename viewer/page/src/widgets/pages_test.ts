import { expect, it } from 'vitest';
import { PAGE_ROWS, Pages } from './pages';

const rows = (page: number): number[] => Array.from({ length: PAGE_ROWS }, (_, i) => page * PAGE_ROWS + i);

it('requests each page once', () => {
  const pages = new Pages<number>();
  expect(pages.takeMissing(PAGE_ROWS - 5, PAGE_ROWS + 5)).toEqual([0, 1]);
  expect(pages.takeMissing(0, 10)).toEqual([]);
  expect(pages.rowAt(3)).toBeUndefined();
  pages.put(0, rows(0));
  expect(pages.rowAt(3)).toBe(3);
});

it('requests a page again after it failed', () => {
  const pages = new Pages<number>();
  pages.takeMissing(0, 1);
  pages.drop(0);
  expect(pages.takeMissing(0, 1)).toEqual([0]);
});

it('keeps few pages of fifty million rows, those used last', () => {
  const pages = new Pages<number>();
  for (let page = 0; page < 1000; page++) {
    for (const missing of pages.takeMissing(page * PAGE_ROWS, page * PAGE_ROWS + 1)) pages.put(missing, rows(missing));
    pages.takeMissing(0, 1);
  }
  expect(pages.rowAt(0)).toBe(0);
  expect(pages.rowAt(999 * PAGE_ROWS)).toBe(999 * PAGE_ROWS);
  expect(pages.rowAt(500 * PAGE_ROWS)).toBeUndefined();
});

it('discards a page that is no longer wanted', () => {
  const pages = new Pages<number>();
  pages.put(7, rows(7));
  expect(pages.rowAt(7 * PAGE_ROWS)).toBeUndefined();
});
