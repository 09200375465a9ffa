import { expect, it } from 'vitest';
import { fitText } from './fit_text';

// Wide and narrow letters.
const WIDTHS: Readonly<Record<string, number>> = { W: 12, i: 3, '…': 8 };
function widthOf(text: string): number {
  let sum = 0;
  for (let i = 0; i < text.length; ++i) sum += WIDTHS[text[i]!]!;
  return sum;
}

it('never exceeds the width, and cuts no more than necessary', () => {
  for (const text of ['WWWWWWWW', 'iiiiiiiiiiii', 'WiWiWiiiiiiWWWW', 'iiiiiiiiWWWW']) {
    for (let width = 12; width < widthOf(text); ++width) {
      const fitted = fitText(text, width, widthOf);
      expect(widthOf(fitted)).toBeLessThanOrEqual(width);
      const kept = Math.max(1, fitted.length - 1);
      if (kept + 1 < text.length) expect(widthOf(`${text.slice(0, kept + 1)}…`)).toBeGreaterThan(width);
    }
    expect(fitText(text, widthOf(text), widthOf)).toBe(text);
  }
});

it('is empty without room for three letters', () => expect([fitText('WWWW', 20, widthOf), fitText('iiii', 3, widthOf)]).toEqual(['', '']));
