import { describe, expect, it } from 'vitest';
import {
  clampTop,
  contentHeight,
  lastTop,
  MAX_HEIGHT,
  scrollOfTop,
  shown,
  topOfScroll,
  topThatShows,
} from './virtual_rows';

const FEW = { count: 100, rowHeight: 20, height: 400 };
const MANY = { count: 50_000_000, rowHeight: 20, height: 400 };

describe('virtual rows', () => {
  it('scroll a short list pixel by pixel', () => {
    expect(contentHeight(FEW)).toBe(2000);
    expect(topOfScroll(FEW, 30)).toBeCloseTo(1.5);
    expect(scrollOfTop(FEW, 1.5)).toBeCloseTo(30);
  });

  it('never make a list higher than a browser can scroll', () => {
    expect(contentHeight(MANY)).toBe(MAX_HEIGHT);
    expect(topOfScroll(MANY, MAX_HEIGHT - MANY.height)).toBe(50_000_000 - 20);
  });

  it.each([FEW, MANY])('restore the position from the scroll bar', (rows) => {
    for (const fraction of [0, 0.1234, 0.5, 1]) {
      const top = fraction * lastTop(rows);
      expect(topOfScroll(rows, scrollOfTop(rows, top))).toBeCloseTo(top, 3);
    }
  });

  it('include rows that are cut at either edge', () => {
    expect(shown(FEW, 0)).toEqual({ first: 0, end: 20 });
    expect(shown(FEW, 3.5)).toEqual({ first: 3, end: 24 });
    expect(shown(FEW, lastTop(FEW))).toEqual({ first: 80, end: 100 });
    expect(shown({ ...FEW, count: 5 }, 0)).toEqual({ first: 0, end: 5 });
    expect(shown({ ...FEW, count: 0 }, 0)).toEqual({ first: 0, end: 0 });
  });

  it('move no further than a row needs', () => {
    expect(topThatShows(FEW, 10, 15)).toBe(10);
    expect(topThatShows(FEW, 10, 9)).toBe(9);
    expect(topThatShows(FEW, 10, 30)).toBe(11);
    expect(topThatShows(FEW, 10.5, 10)).toBe(10);
    expect(topThatShows(MANY, 0, 49_999_999)).toBe(lastTop(MANY));
  });

  it('stay inside the list', () => {
    expect(clampTop(FEW, -3)).toBe(0);
    expect(clampTop(FEW, 99)).toBe(80);
    expect(clampTop({ ...FEW, count: 3 }, 2)).toBe(0);
  });
});
