import { describe, expect, it } from 'vitest';
import type { RankRow, Ranks } from '../../data/protocol';
import { cellAt, cellWords, columnCount, columnWords, differenceOf, HEADING, headingsOf, LABELS, layOut, movedSpot, scaleOf, shadeOf, spotAt, stepsOf, WHOLE } from './heat_map';

const MIB = 2 ** 20;

function rank(number: number, peaks: readonly number[], steps = 2 * peaks.length): RankRow {
  const bytes = peaks.map((mib) => mib * MIB);
  return { file: number, name: `rank ${number}`, peak_bytes: Math.max(...bytes), steps, step_peaks: bytes, differs: false, causes: [] };
}

const RANKS: Ranks = {
  headline: '', steps_per_group: 2, median_peak_bytes: 120 * MIB, median_step_peaks: [100 * MIB, 100 * MIB, 120 * MIB],
  rows: [rank(0, [100, 100, 120]), rank(1, [100, 100, 120], 5), rank(2, [100, 140, 120]), rank(3, [90, 100])],
  outliers: [], missing: [], has_more: false,
};

describe('a cell', () => {
  it('has the peak of its steps, or of the whole recording, and the median', () => {
    expect(columnCount(RANKS)).toBe(4);
    expect(cellAt(RANKS, 2, WHOLE)).toEqual({ bytes: 140 * MIB, median: 120 * MIB });
    expect(cellAt(RANKS, 2, 2)).toEqual({ bytes: 140 * MIB, median: 100 * MIB });
    expect(cellAt(RANKS, 3, 3)).toBeNull();
    expect(cellAt(RANKS, 4, 0)).toBeNull();
  });

  it('is described in words', () => {
    expect(cellWords(RANKS, 2, 2)).toBe('rank 2, steps 3 to 4: 140 MiB, +40.0 MiB (+40 %) from the median');
    expect(cellWords(RANKS, 3, 1)).toBe('rank 3, steps 1 to 2: 90.0 MiB, -10.0 MiB (-10 %) from the median');
    expect(cellWords(RANKS, 0, WHOLE)).toBe('rank 0, whole recording: 120 MiB, the median');
    expect(cellWords(RANKS, 3, 3)).toBe('rank 3, step 5: it took only 4');
    expect(cellWords(RANKS, 9, 0)).toBe('');
  });

  it('names the steps that a rank took', () => {
    expect(stepsOf(RANKS, RANKS.rows[0]!, 3)).toEqual({ first: 5, last: 6 });
    expect(stepsOf(RANKS, RANKS.rows[1]!, 3)).toEqual({ first: 5, last: 5 });
    expect(columnWords(RANKS, RANKS.rows[1]!, 3)).toBe('step 5');
    expect(stepsOf(RANKS, RANKS.rows[0]!, WHOLE)).toBeNull();
  });
});

describe('headings', () => {
  const peaks = Array.from({ length: 100 }, () => 100);
  const many: Ranks = { ...RANKS, median_step_peaks: peaks, rows: [rank(0, peaks)] };
  it.each([1, 6, 11])('never overlap, and stay within the picture, if a letter has %d px', (letter) => {
    const widthOf = (words: string): number => letter * words.length;
    const headings = headingsOf(many, layOut(many, 1200, 400), 1200, widthOf);
    expect(headings[0]!.words).toBe('peak');
    expect(headings.at(-1)!.words).toMatch(/^steps 1\d\d–/);
    headings.slice(1).forEach(({ x }, i) => expect(x).toBeGreaterThan(headings[i]!.x + (i === 0 ? 0 : widthOf(headings[i]!.words))));
    expect(headings.at(-1)!.x + widthOf(headings.at(-1)!.words)).toBeLessThanOrEqual(1200);
  });
  it('name only the peak without ranks', () => expect(headingsOf({ ...RANKS, rows: [] }, layOut(RANKS, 300, 100), 300, () => 5)).toHaveLength(1));
});

describe('colours', () => {
  it('are full at a round share that no cell exceeds', () => {
    expect(scaleOf(RANKS)).toBe(0.5);
    expect(scaleOf({ ...RANKS, rows: [rank(0, [101, 100, 120])] })).toBe(0.05);
    expect(scaleOf({ ...RANKS, rows: [rank(0, [900, 100, 120])] })).toBe(1);
    expect(scaleOf({ ...RANKS, rows: [] })).toBe(0.05);
  });

  it('grow with the difference in both directions, and never beyond the full one', () => {
    expect(shadeOf({ bytes: 100, median: 100 }, 0.5)).toBe(0);
    expect(shadeOf({ bytes: 125, median: 100 }, 0.5)).toBe(0.5);
    expect(shadeOf({ bytes: 75, median: 100 }, 0.5)).toBe(-0.5);
    expect(shadeOf({ bytes: 900, median: 100 }, 0.5)).toBe(1);
    expect(differenceOf({ bytes: 0, median: 0 })).toBe(0);
    expect(differenceOf({ bytes: 1, median: 0 })).toBe(1);
  });
});

describe('the layout', () => {
  it('fills the space, with rows that can be distinguished', () => {
    const { rowHeight, columns, height } = layOut(RANKS, 1000, 500);
    expect(rowHeight).toBe(24);
    expect(height).toBe(HEADING + 4 * 24);
    expect(columns).toHaveLength(4);
    expect(columns[3]!.x + columns[3]!.width).toBeCloseTo(1000);
    const many = { ...RANKS, rows: Array.from({ length: 10_000 }, (_, i) => rank(i, [100, 100, 120])) };
    expect(layOut(many, 1000, 500)).toMatchObject({ rowHeight: 4, height: HEADING + 40_000 });
  });

  it('finds the cell at a position', () => {
    const layout = layOut(RANKS, 1000, 500);
    for (const [row, column] of [[0, 0], [3, 3], [2, 1]] as const) {
      const { x, width } = layout.columns[column]!;
      expect(spotAt(RANKS, layout, x + width / 2, HEADING + (row + 0.5) * layout.rowHeight)).toEqual({ row, column });
    }
    expect(spotAt(RANKS, layout, LABELS - 1, HEADING + 1)).toBeNull();
    expect(spotAt(RANKS, layout, LABELS + 1, HEADING - 1)).toBeNull();
    expect(spotAt(RANKS, layout, LABELS + 1, layout.height)).toBeNull();
  });
});

it('keys move between cells, and stop at the edges', () => {
  const from = { row: 1, column: 1 };
  expect(movedSpot(RANKS, from, 'ArrowRight')).toEqual({ row: 1, column: 2 });
  expect(movedSpot(RANKS, from, 'ArrowUp')).toEqual({ row: 0, column: 1 });
  expect(movedSpot(RANKS, { row: 0, column: 0 }, 'ArrowUp')).toEqual({ row: 0, column: 0 });
  expect(movedSpot(RANKS, { row: 0, column: 0 }, 'ArrowLeft')).toEqual({ row: 0, column: 0 });
  expect(movedSpot(RANKS, from, 'End')).toEqual({ row: 3, column: 1 });
  expect(movedSpot(RANKS, { row: 3, column: 3 }, 'ArrowRight')).toEqual({ row: 3, column: 3 });
  expect(movedSpot(RANKS, from, 'KeyA')).toBeNull();
});
