// How much of a text fits a width on a canvas.

/** `charWidth`: px of an average letter. Cut with an ellipsis; '' where nothing worth reading fits. */
export function fitText(text: string, width: number, charWidth: number): string {
  const room = Math.floor(width / charWidth);
  if (text.length <= room) return text;
  return room < 3 ? '' : `${text.slice(0, room - 1)}…`;
}
