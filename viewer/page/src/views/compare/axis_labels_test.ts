import { expect, it } from 'vitest';
import { labelsAlong } from './axis_labels';

const widthOf = (text: string): number => text.length * 10;
const along = (ticks: readonly number[]): string[] =>
  labelsAlong({ from: 0, to: 100, ticks }, (position) => `p${position}`, 50, 550, widthOf).map(({ text, left }) => `${text} ${left}`);

it('are centered at their positions, and stay inside at the ends', () => expect(along([0, 50, 100])).toEqual(['p0 50', 'p100 510', 'p50 285']));

it('are left out if they would overlap an end or an earlier label', () => expect(along([0, 1, 50, 52, 99, 100])).toEqual(['p0 50', 'p100 510', 'p50 285']));
