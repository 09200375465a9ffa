// Colours of frames. In the graph of one moment, the kind of a frame gives the hue and its name the
// shade, so that a function has the same colour everywhere; or the colour is that of the category
// that has most of the frame's bytes, paler for a smaller part of them. In a graph of changes,
// orange is more and blue is less, paler for a smaller part of the frame. All colours are light
// enough for black text in both themes.

import type { FlameTree } from '../../data/protocol';
import { hueOfCategory, mix, SHADES } from '../../render/palette';
import { differs, frameName } from './flame_words';

const HUE: Readonly<Record<string, number>> = { user: 36, python: 52, native: 205, folded: 0 };

/** `categories`: their names, to colour by category; null colours by the kind of frame. */
export function frameColor(tree: FlameTree, node: number, isGrowth: boolean, categories: readonly string[] | null): string {
  if (differs(tree)) {
    const before = tree.before[node]!;
    const bytes = tree.bytes[node]!;
    return deltaColor(bytes - before, Math.max(before, bytes));
  }
  if (isGrowth) return deltaColor(tree.bytes[node]!, Math.abs(tree.bytes[node]!));
  if (categories !== null && tree.category.length > 0) return categoryColor(categories[tree.category[node]!] ?? '', tree.category_bytes[node]! / tree.bytes[node]!);
  if (node === 0) return '#c9ced6';
  const name = frameName(tree, node);
  const shade = hash(name.function) % 12;
  if (name.kind === 'folded') return `hsl(0 0% ${72 + shade}%)`;
  const hue = (HUE[name.kind] ?? 205) + (shade - 6);
  return `hsl(${hue} ${name.kind === 'native' ? 45 : 80}% ${66 + shade}%)`;
}

/**
 * Returns the colour of a change by `delta` of `whole`: blue is less, orange is more, grey is
 * equal.
 */
export function deltaColor(delta: number, whole: number): string {
  if (delta === 0 || whole <= 0) return 'hsl(0 0% 84%)';
  const strength = Math.min(1, Math.abs(delta) / whole);
  const lightness = 86 - 26 * strength;
  return delta > 0 ? `hsl(36 95% ${lightness.toFixed(0)}%)` : `hsl(205 85% ${lightness.toFixed(0)}%)`;
}

const [PALEST, PALER] = [0.8, 0.45]; // the share of white

/** Returns the colour of a category that has `share` of a frame's bytes. */
export function categoryColor(category: string, share: number): string {
  return mix(SHADES.light[hueOfCategory(category)], '#ffffff', PALEST - (PALEST - PALER) * Math.min(1, Math.max(0, share)));
}

function hash(text: string): number {
  let value = 7;
  for (let i = 0; i < text.length; i++) value = (Math.imul(value, 31) + text.charCodeAt(i)) >>> 0;
  return value;
}
