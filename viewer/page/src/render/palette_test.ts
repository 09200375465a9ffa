import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { distance, EYES, seenBy, type Eye } from '../testing/eyes';
import { cssColor, hueOfCategory, inkOn, luminance, mix, SEQUENTIAL, SHADES, type Hue, type Scheme } from './palette';
import { hexOf } from './theme';

const eyes = Object.keys(EYES) as Eye[];
const hues = Object.keys(SHADES.light) as Hue[];
const CATEGORIES = [
  'unknown', 'parameters', 'gradients', 'optimizer state', 'activations', 'recomputed', 'temporaries', 'inputs', 'workspaces', 'communication',
  'graph pools', 'kv cache', 'other libraries', 'cache',
];
const FREQUENT = ['unknown', 'parameters', 'gradients', 'optimizer state', 'activations', 'temporaries'];

function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

/** Returns the pairs that some eye sees closer together than `than`, as text. */
function nearer(than: number, colors: readonly (readonly [name: string, color: string])[]): string[] {
  const found: string[] = [];
  for (const [i, [name, color]] of colors.entries()) {
    for (const [other, otherColor] of colors.slice(0, i)) {
      for (const eye of eyes) {
        const apart = distance(eye, color, otherColor);
        if (apart < than) found.push(`${eye}: ${name} and ${other}, ${apart.toFixed(1)}`);
      }
    }
  }
  return found;
}

/** Returns a colour of the style sheet, from which canvases read it. */
function ofPage(name: string, scheme: Scheme): string {
  const css = readFileSync(new URL('../styles.css', import.meta.url), 'utf8');
  const [, light, dark] = new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(css)!;
  return scheme === 'light' ? light! : dark!;
}

describe('eyes', () => {
  it('see white and black unchanged', () => {
    for (const eye of eyes) {
      seenBy(eye, '#ffffff').forEach((value, i) => expect(value).toBeCloseTo(i === 0 ? 100 : 0, 0));
      expect(seenBy(eye, '#000000')[0]).toBeCloseTo(0, 6);
    }
  });
  it('with a deficiency confuse colours that others distinguish', () => {
    expect(distance('normal', '#cc79a7', '#9a9fa8')).toBeGreaterThan(35);
    expect(distance('deuteranopia', '#cc79a7', '#9a9fa8')).toBeLessThan(3);
    expect(distance('protanopia', '#d55e00', '#a8691b')).toBeLessThan(4);
  });
});

describe.each(['light', 'dark'] as const)('colours of a %s page', (scheme) => {
  const shades = SHADES[scheme];
  const ofCategory = (name: string): readonly [string, string] => [name, shades[hueOfCategory(name)]];

  it('are distinguishable by any eye', () => expect(nearer(10, hues.map((hue) => [hue, shades[hue]]))).toEqual([]));
  it('of categories are distinguishable, frequent ones more so', () => {
    expect(new Set(CATEGORIES.map(hueOfCategory)).size).toBe(CATEGORIES.length);
    expect(nearer(10, CATEGORIES.map(ofCategory))).toEqual([]);
    expect(nearer(16, FREQUENT.map(ofCategory))).toEqual([]);
  });
  it.each(['bg', 'panel'])('contrast with %s', (ground) => {
    for (const color of [...Object.values(shades), ...SEQUENTIAL[scheme]]) expect(contrast(color, ofPage(ground, scheme))).toBeGreaterThanOrEqual(3);
  });
  it('are not confused with the colour of what is too small to be seen', () => {
    expect(nearer(10, [['rest', ofPage('rest', scheme)], ['bg', ofPage('bg', scheme)], ['silver', shades.silver], ['grey', shades.grey]])).toEqual([]);
  });
  it('get lighter with size and age, step by step, for any eye', () => {
    for (const eye of eyes) {
      const lightness = SEQUENTIAL[scheme].map((color) => seenBy(eye, color)[0]);
      for (const [i, value] of lightness.slice(1).entries()) expect(value - lightness[i]!).toBeGreaterThan(4);
    }
  });
  it('carry text with a contrast of at least 4.5 to 1', () => {
    for (const color of Object.values(shades)) expect(contrast(color, inkOn(color))).toBeGreaterThanOrEqual(4.5);
  });
});

describe('palette', () => {
  it('gives a category one colour, however its name is written', () => {
    expect(hueOfCategory('kv_cache')).toBe(hueOfCategory('kv cache'));
    expect(hues).toContain(hueOfCategory('of my own'));
  });
  it('gives elements both colours', () => expect(cssColor('blue')).toBe(`light-dark(${SHADES.light.blue}, ${SHADES.dark.blue})`));
  it('parses colours that the browser computed', () => {
    expect(hexOf('rgb(1, 20, 255)')).toBe('#0114ff');
    expect(hexOf('rgba(0, 0, 0, 0.5)')).toBe('#000000');
  });
  it('mixes colours', () => {
    expect(mix('#000000', '#ffffff', 0.5)).toBe('#808080');
    expect(mix('#123456', '#ffffff', 0)).toBe('#123456');
  });
});
