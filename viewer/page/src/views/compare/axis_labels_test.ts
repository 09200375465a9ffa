import { expect, it } from 'vitest';
import { labelsAlong } from './axis_labels';

const widthOf = (text: string): number => text.length * 10;
const along = (ticks: readonly number[]): string[] =>
  labelsAlong({ from: 0, to: 100, ticks }, (position) => `p${position}`, 50, 550, widthOf).map(({ text, left }) => `${text} ${left}`);

it('are in the middle of their positions, and inside at the ends', () => expect(along([0, 50, 100])).toEqual(['p0 50', 'p100 510', 'p50 285']));

it('leave out what would run into the end, or into one before', () => expect(along([0, 1, 50, 52, 99, 100])).toEqual(['p0 50', 'p100 510', 'p50 285']));
