// Hatches a rectangle with slanted lines. Hatching repeats what a colour says, for people who
// cannot distinguish the colours. `/` over a colour means waiting for a
// stream, `\` lost to rounding, `/` alone free.

const SPACING = 5; // px

export function hatch(
  context: CanvasRenderingContext2D,
  left: number,
  top: number,
  width: number,
  height: number,
  direction: '/' | '\\',
  color: string,
): void {
  if (width < 1 || height < 1) return;
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 1;
  context.beginPath();
  // On a grid of the whole canvas, so that the lines of neighbours meet.
  const begin = Math.floor((left - height) / SPACING) * SPACING;
  for (let x = begin; x < left + width + height; x += SPACING) {
    if (direction === '/') {
      context.moveTo(x, top + height);
      context.lineTo(x + height, top);
    } else {
      context.moveTo(x, top);
      context.lineTo(x + height, top + height);
    }
  }
  context.stroke();
  context.restore();
}
