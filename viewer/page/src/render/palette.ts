// The colours that have a meaning: the name of each hue, its shade on a light and on a dark page,
// and what uses it.
//
// They were searched for near the hues of Okabe and Ito, so that (palette_test.ts)
//   - any two are distinguishable, at least 10 apart in CIELAB, with normal vision and with any one
//     of the three kinds of cones missing;
//   - each contrasts with its background at 3 to 1 or more;
//   - the most frequent ones are further apart than the others.
//
// Grey means "other".

/** The colour scheme of the page. */
export type Scheme = 'light' | 'dark';

export type Hue = keyof (typeof SHADES)['light'];

export const SHADES = {
  light: {
    grey: '#6d7179', blue: '#006aa6', vermilion: '#b05211', pink: '#be75ad', amber: '#bf8200', yellow: '#999039', sky: '#0096d8',
    green: '#22a077', teal: '#136751', plum: '#9e5690', brown: '#9a6830', navy: '#054c75', olive: '#6e6238', silver: '#8a8e94',
  },
  dark: {
    grey: '#989da6', blue: '#0b72b1', vermilion: '#c9611b', pink: '#a0507e', amber: '#efa926', yellow: '#fef30f', sky: '#6ec0f2',
    green: '#1d8f6a', teal: '#7dc4ab', plum: '#b26aa3', brown: '#b57c3e', navy: '#2696de', olive: '#776b43', silver: '#c7ccd4',
  },
} as const;

/**
 * Dark to light in equal steps, from blue to yellow (after cividis). All contrast with the page.
 */
export const SEQUENTIAL: Readonly<Record<Scheme, readonly string[]>> = {
  light: ['#001d4d', '#2a2c49', '#493c44', '#644d3e', '#7d6035', '#977329', '#b08714'],
  dark: ['#2970b3', '#6882a9', '#8f949f', '#b0a893', '#cebd86', '#ead276', '#ffe764'],
};

const OF_CATEGORY: Readonly<Record<string, Hue>> = {
  unknown: 'grey',
  parameters: 'blue',
  gradients: 'vermilion',
  'optimizer state': 'pink',
  activations: 'amber',
  recomputed: 'yellow',
  temporaries: 'sky',
  inputs: 'green',
  workspaces: 'teal',
  communication: 'plum',
  'graph pools': 'brown',
  'kv cache': 'navy',
  'other libraries': 'olive',
  cache: 'silver',
};

// The hues of streams, threads and call sites, the most different ones first.
const HUES_BY_CONTRAST: readonly Hue[] = ['blue', 'amber', 'green', 'pink', 'sky', 'vermilion', 'yellow', 'teal', 'plum', 'brown', 'navy', 'olive'];

/** The number of colours for call sites. */
export const SITES = HUES_BY_CONTRAST.length;

/** Returns the hue of a category by its name, so that files with other codes look the same. */
export function hueOfCategory(name: string): Hue {
  return OF_CATEGORY[name.replaceAll('_', ' ')] ?? hueOfIndex(hashText(name));
}

const OF_ROLE: Readonly<Record<string, Hue>> = {
  unknown: 'grey',
  'a parameter': OF_CATEGORY['parameters']!,
  'a gradient': OF_CATEGORY['gradients']!,
  'saved for backward': OF_CATEGORY['activations']!,
  'state of an optimizer': OF_CATEGORY['optimizer state']!,
  'an input': OF_CATEGORY['inputs']!,
  'only the program holds it': OF_CATEGORY['temporaries']!,
};

/** Returns the hue of a reason to be alive: that of the category that is nearly the same. */
export function hueOfRole(role: string): Hue {
  return OF_ROLE[role] ?? 'grey';
}

// The most frequent ones first.
const DTYPES = ['float32', 'bfloat16', 'float16', 'int64', 'float64', 'uint8', 'int32', 'bool', 'complex64', 'float8_e4m3fn', 'float8_e5m2', 'int8'];

/** Returns the hue of a type of tensor by its name, so that files with other codes look the same. */
export function hueOfDtype(dtype: string): Hue {
  const index = DTYPES.indexOf(dtype);
  return dtype === 'unknown' ? 'grey' : hueOfIndex(index >= 0 ? index : hashText(dtype));
}

export function hueOfIndex(index: number): Hue {
  return HUES_BY_CONTRAST[index % HUES_BY_CONTRAST.length]!;
}

/**
 * Returns a colour for the style of an element, where the browser switches it with the page between
 * light and dark.
 */
export function cssColor(hue: Hue): string {
  return `light-dark(${SHADES.light[hue]}, ${SHADES.dark[hue]})`;
}

/** Mixes `share` of `other` into a '#rrggbb'. */
export function mix(color: string, other: string, share: number): string {
  const [a, b] = [channels(color), channels(other)];
  return `#${a.map((value, i) => Math.round(value + (b[i]! - value) * share).toString(16).padStart(2, '0')).join('')}`;
}

/** Returns black or white, whichever is more readable on the colour. */
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
