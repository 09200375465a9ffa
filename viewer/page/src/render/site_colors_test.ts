import { describe, expect, it } from 'vitest';
import { Random } from '../testing/random';
import { forEachSeed } from '../testing/seeds';
import { SITES } from './palette';
import { SiteColors } from './site_colors';
import type { Theme } from './theme';

const THEME: Theme = { scheme: 'light', bg: '#ffffff', fg: '#000000', muted: '#000000', line: '#000000', panel: '#ffffff', accent: '#0000ff', warn: '#ff0000', rest: '#dddddd', font: '11px x' };

describe('call sites', () => {
  it('have different colours if they are among the largest', () => {
    forEachSeed([1], (seed) => {
      const random = new Random(seed);
      for (let round = 0; round < 200; ++round) {
        const keys = new Set<number>();
        while (keys.size < SITES + 20) keys.add(1 + random.below(2 ** 32 - 1));
        const [largest, others] = [[...keys].slice(0, SITES), [...keys].slice(SITES)];
        const colors = new SiteColors(largest, THEME);
        const full = new Set(largest.map((key) => colors.colorOf(key)));
        expect(full.size).toBe(SITES);
        for (const key of others) expect(full).not.toContain(colors.colorOf(key));
      }
    });
  });
  it('keep the colour of their key while no larger one has it', () => {
    const alone = new SiteColors([7], THEME).colorOf(7);
    expect(new SiteColors([7, 8, 9, 10], THEME).colorOf(7)).toBe(alone);
    expect(new SiteColors([], THEME).colorOf(7)).toBe(alone);
  });
  it('spread over all colours if none is known to be large', () => {
    const colors = new SiteColors([], THEME);
    const used = new Map<string, number>();
    for (let key = 0; key < 2100; ++key) used.set(colors.colorOf(key), (used.get(colors.colorOf(key)) ?? 0) + 1);
    expect(used.size).toBe(SITES);
    expect(Math.max(...used.values())).toBeLessThan(300);
    expect(colors.colorOf(0xffffffff)).toMatch(/^#[0-9a-f]{6}$/);
  });
});
