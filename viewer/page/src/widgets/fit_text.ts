// Cuts a text to a width on a canvas.

const LEAST = 12; // px; no three letters fit into less

/**
 * Cuts `text` with an ellipsis so that `widthOf` it is at most `width`. Returns '' if fewer than
 * three letters fit.
 */
export function fitText(text: string, width: number, widthOf: (text: string) => number): string {
  if (width < LEAST) return '';
  if (widthOf(text) <= width) return text;
  const cut = (letters: number): string => `${text.slice(0, letters)}…`;
  let [fits, exceeds] = [0, text.length];
  while (exceeds - fits > 1) {
    const middle = (fits + exceeds) >> 1;
    if (widthOf(cut(middle)) <= width) fits = middle;
    else exceeds = middle;
  }
  return fits < 2 ? '' : cut(fits);
}
