import { describe, expect, it } from 'vitest';
import { colorOfCategory, colorOfKey, inkOn, luminance, mix, SITES } from './palette';
import { hexOf } from './theme';

describe('palette', () => {
  it('spreads call sites over all colours', () => {
    const used = new Map<string, number>();
    for (let key = 0; key < 2100; ++key) used.set(colorOfKey(key), (used.get(colorOfKey(key)) ?? 0) + 1);
    expect(used.size).toBe(SITES.length);
    expect(Math.max(...used.values())).toBeLessThan(300);
  });
  it('takes keys of 32 bits', () => expect(SITES).toContain(colorOfKey(0xffffffff)));
  it('has one colour for a category, however its name is written', () => {
    expect(colorOfCategory('kv_cache')).toBe(colorOfCategory('kv cache'));
    expect(colorOfCategory('of my own')).toMatch(/^#[0-9a-f]{6}$/);
  });
  it('reads what the browser worked out', () => {
    expect(hexOf('rgb(1, 20, 255)')).toBe('#0114ff');
    expect(hexOf('rgba(0, 0, 0, 0.5)')).toBe('#000000');
  });
  it('mixes', () => {
    expect(mix('#000000', '#ffffff', 0.5)).toBe('#808080');
    expect(mix('#123456', '#ffffff', 0)).toBe('#123456');
  });
  it('writes with at least 4.5 to 1', () => {
    for (const color of SITES) {
      const [a, b] = [luminance(color), luminance(inkOn(color))].sort((x, y) => y - x);
      expect((a! + 0.05) / (b! + 0.05)).toBeGreaterThanOrEqual(4.5);
    }
  });
});
