// Cuts a text to a width on a canvas.

/**
 * Cuts `text` with an ellipsis to `width` px; `charWidth` is the px of an average letter. Returns
 * '' if fewer than three letters fit.
 */
export function fitText(text: string, width: number, charWidth: number): string {
  const room = Math.floor(width / charWidth);
  if (text.length <= room) return text;
  return room < 3 ? '' : `${text.slice(0, room - 1)}…`;
}
