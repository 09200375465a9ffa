// Places the labels below a chart without overlap. The labels of the two ends take precedence.

import type { Alignment } from './alignment';

const GAP = 8; // px between two labels

export interface Label {
  readonly text: string;
  readonly left: number; // px
}

/** Returns the labels along [left, right) px. `widthOf` measures in px. */
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
