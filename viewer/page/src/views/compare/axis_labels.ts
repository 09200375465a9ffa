// The words below a chart whose ends have words too: none runs into another, and the ends' come first.

import type { Alignment } from './alignment';

const GAP = 8; // px between two

export interface Label {
  readonly text: string;
  readonly left: number; // px
}

/** Along [left, right) px; `widthOf` in px. */
export function labelsAlong(
  { from, to, ticks }: Pick<Alignment, 'from' | 'to' | 'ticks'>,
  wordsOf: (position: number) => string,
  left: number,
  right: number,
  widthOf: (text: string) => number,
): Label[] {
  const taken: (Label & { readonly end: number })[] = [];
  const isEnd = (position: number): boolean => position === from || position === to;
  for (const position of [...ticks.filter(isEnd), ...ticks.filter((each) => !isEnd(each))]) {
    const text = wordsOf(position);
    const width = widthOf(text);
    const middle = left + ((position - from) / (to - from)) * (right - left);
    const begin = Math.min(Math.max(left, middle - width / 2), right - width);
    const isFree = taken.every((each) => begin >= each.end + GAP || begin + width <= each.left - GAP);
    if (isFree) taken.push({ text, left: begin, end: begin + width });
  }
  return taken.map(({ text, left: at }) => ({ text, left: at }));
}
