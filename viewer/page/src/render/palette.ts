// Colours with a meaning. Categorical ones are those of Okabe and Ito, which people with any kind of
// colour vision tell apart; further ones are the same hues lighter or darker. Grey means "other".

export const OKABE_ITO = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442'] as const;
export const OTHER = '#9a9fa8';

/** Dark to light, equal steps to every eye (after cividis). */
export const SEQUENTIAL = ['#00306f', '#2f476b', '#575d6d', '#7c7b78', '#a39976', '#ccb968', '#f5db4c'] as const;

const OF_CATEGORY: Readonly<Record<string, string>> = {
  unknown: OTHER,
  parameters: '#0072b2',
  gradients: '#d55e00',
  'optimizer state': '#cc79a7',
  activations: '#e69f00',
  recomputed: '#f0e442',
  temporaries: '#56b4e9',
  inputs: '#009e73',
  workspaces: '#7fb8a4',
  communication: '#8c4a7f',
  'graph pools': '#a8691b',
  'kv cache': '#5a9bd4',
  'other libraries': '#7d6f3c',
  cache: '#c7ccd4',
};

/** Of a category by its name, so that files with other codes look the same. */
export function colorOfCategory(name: string): string {
  return OF_CATEGORY[name.replaceAll('_', ' ')] ?? colorOfIndex(hashText(name));
}

/** Of a call site: the same in every view, file and run. */
export function colorOfKey(key: number): string {
  return SITES[indexOfKey(key)]!;
}

/** Which of SITES a call site has. */
export function indexOfKey(key: number): number {
  // Keys may be near each other; their colours should not be.
  return (Math.imul(key ^ (key >>> 16), 0x45d9f3b) >>> 8) % SITES.length;
}

export function colorOfIndex(index: number): string {
  return OKABE_ITO[index % OKABE_ITO.length]!;
}

/** Mixes `share` of `other` into a '#rrggbb'. */
export function mix(color: string, other: string, share: number): string {
  const [a, b] = [channels(color), channels(other)];
  return `#${a.map((value, i) => Math.round(value + (b[i]! - value) * share).toString(16).padStart(2, '0')).join('')}`;
}

/** Black or white, whichever is read better on it. */
export function inkOn(color: string): '#000000' | '#ffffff' {
  return luminance(color) > 0.18 ? '#000000' : '#ffffff';
}

/** Relative luminance, 0 to 1 (WCAG 2). */
export function luminance(color: string): number {
  const [r, g, b] = channels(color).map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function channels(color: string): readonly number[] {
  return [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
}

function hashText(text: string): number {
  let hash = 7;
  for (let i = 0; i < text.length; ++i) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) >>> 0;
  return hash;
}

export const SITES: readonly string[] = OKABE_ITO.flatMap((color) => [color, mix(color, '#ffffff', 0.4), mix(color, '#000000', 0.3)]);
