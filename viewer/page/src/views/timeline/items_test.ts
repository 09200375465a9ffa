import { describe, expect, it } from 'vitest';
import { Random } from '../../testing/random';
import { forEachSeed } from '../../testing/seeds';
import { NO_ROW, type BlockQuery, type FileMeta } from '../../data/protocol';
import { hueOfCategory, luminance, SHADES } from '../../render/palette';
import { SiteColors } from '../../render/site_colors';
import type { Theme } from '../../render/theme';
import { NO_FILTER, type ColorBy } from '../../state/state';
import { siteLabelOf } from '../../data/stack_cache';
import { recordedSource, stacksOf } from '../../testing/recordings';
import { COLORINGS, colorItems, lackOf, siteLegend, topSites } from './coloring';
import { HitTest } from './hits';
import { passingItems, textMatcher } from './passing';
import { layoutStacked } from './stacked_layout';

const source = recordedSource();
const QUERY: BlockQuery = { file: 0, lane: 0, axis: 'event', from: 200, to: 600, columns: 400, layout: 'stacked', low: 0, high: 2 ** 30, rows: 512 };
const tile = await source.blocks(QUERY);
const laidOut = layoutStacked(tile, await source.curve(QUERY), 0);
const { quads } = laidOut;
const THEME: Theme = { scheme: 'light', bg: '#ffffff', fg: '#000000', muted: '#000000', line: '#000000', panel: '#ffffff', accent: '#0000ff', warn: '#ff0000', rest: '#dddddd', font: '11px x' };
const SITES = new SiteColors((await source.meta()).files[0]!.lanes[0]!.sites, THEME);
const stackOf = await stacksOf(source, tile);

async function fileMeta(): Promise<FileMeta> {
  return (await source.meta()).files[0]!;
}

describe('hit test', () => {
  it('finds the same as a linear search over all quads', () => {
    const test = new HitTest(quads);
    forEachSeed([1], (seed) => {
      const random = new Random(seed);
      let hits = 0;
      for (let round = 0; round < 3000; ++round) {
        const [x, y] = [190 + random.next() * 420, random.next() * 2 ** 30 * 1.1];
        let expected: number | null = null;
        for (let i = 0; i < quads.count; ++i) {
          if (quads.x0[i]! <= x && x < quads.x1[i]! && quads.y0[i]! <= y && y < quads.y1[i]!) expected = quads.item[i]!;
        }
        expect(test.itemAt(x, y)).toBe(expected);
        if (expected !== null) ++hits;
      }
      expect(hits).toBeGreaterThan(500);
    });
  });
});

it('by the time held has a class of its own for blocks that are never freed', async () => {
  const { legend, colors, ofItem } = colorItems(tile, laidOut, 'age', await fileMeta(), SITES, THEME, null);
  const [ofNever] = legend.filter(({ name }) => name === 'never freed').map(({ color }) => color);
  const blocks = [...tile.row.keys()].filter((item) => tile.row[item] !== NO_ROW);
  expect(blocks.some((item) => tile.end[item] === Infinity)).toBe(true);
  for (const item of blocks) expect(colors[ofItem[item]!] === ofNever).toBe(tile.end[item] === Infinity);
});

describe('sums of small blocks', () => {
  const colored = async (passes: Uint8Array | null): Promise<(item: number) => string> => {
    const { colors, ofItem } = colorItems(tile, laidOut, 'category', await fileMeta(), SITES, THEME, passes);
    return (item) => colors[ofItem[item]!]!;
  };
  const runs = [...tile.row.keys()].filter((item) => tile.row[item] === NO_ROW);

  it('have the colour of their category, as blocks have, so that another height changes no colour', async () => {
    const colorOf = await colored(null);
    const blocks = new Map([...tile.row.keys()].filter((item) => tile.row[item] !== NO_ROW).map((item) => [tile.category[item]!, colorOf(item)]));
    expect(runs.length).toBeGreaterThan(0);
    for (const run of runs) expect(colorOf(run)).toBe(SHADES.light[hueOfCategory((await fileMeta()).categories[tile.category[run]!]!)]);
    for (const run of runs) if (blocks.has(tile.category[run]!)) expect(colorOf(run)).toBe(blocks.get(tile.category[run]!));
  });

  it('fade with a filter', async () => {
    const [plain, filtered] = [await colored(null), await colored(new Uint8Array(tile.row.length))];
    for (const run of runs) expect(luminance(filtered(run))).toBeGreaterThan(luminance(plain(run)));
  });
});

describe('filter', () => {
  it('matches everything if it is empty', async () => {
    expect(passingItems(tile, NO_FILTER, await fileMeta(), stackOf)).toBeNull();
  });
  it('gives the same result as on the blocks themselves', async () => {
    const passes = passingItems(tile, { ...NO_FILTER, text: 'MODEL.py', category: 'activations', min_size: 4 * 1024 ** 2 }, await fileMeta(), stackOf)!;
    let passing = 0;
    for (const [i, row] of tile.row.entries()) {
      if (row === NO_ROW) continue;
      const block = await source.block(0, row);
      const expected = block.category === 'activations' && block.size >= 4 * 1024 ** 2 && block.stack.label.includes('model.py');
      expect(passes[i]).toBe(Number(expected));
      passing += Number(expected);
    }
    expect(passing).toBeGreaterThan(3);
    expect(passing).toBeLessThan(tile.row.length);
  });
  it('takes an expression as it is written, as tables do', async () => {
    const passing = async (text: string): Promise<number> => passingItems(tile, { ...NO_FILTER, text }, await fileMeta(), stackOf)!.filter((pass) => pass === 1).length;
    expect(await passing('/FORWARD/')).toBe(0);
    expect(await passing('/forward/')).toBeGreaterThan(3);
    expect(await passing('FORWARD')).toBe(await passing('/forward/'));
  });
  it('takes text between slashes as a pattern; an invalid one matches nothing', () => {
    expect(textMatcher('/mod.*:8\\d/')('/src/model.py:81 forward')).toBe(true);
    expect(textMatcher('/(/')('(')).toBe(false);
    expect(textMatcher('a.c')('abc')).toBe(false);
  });
});

describe('colours', () => {
  it.each<ColorBy>(COLORINGS.map(([by]) => by))('by %s exist for every item', async (by) => {
    const { colors, ofItem } = colorItems(tile, laidOut, by, await fileMeta(), SITES, THEME, null);
    expect(ofItem.length).toBe(laidOut.items);
    for (const color of ofItem) expect(colors[color]).toMatch(/^#[0-9a-f]{6}$/);
  });
  it.each([0, 1, 3])('by category exist while the page knows %i of their names', async (known) => {
    const file = await fileMeta();
    const { colors, ofItem, legend } = colorItems(tile, laidOut, 'category', { ...file, categories: file.categories.slice(0, known) }, SITES, THEME, null);
    for (const color of ofItem) expect(colors[color]).toMatch(/^#[0-9a-f]{6}$/);
    for (const { bytes } of legend) expect(bytes).toBeGreaterThan(0);
  });
  it('by role and type have a legend with the largest first, and a click on it filters', async () => {
    const file = await fileMeta();
    for (const [by, name, text] of [['role', 'a parameter', 'a parameter'], ['dtype', 'bfloat16', 'bfloat16 [']] as const) {
      expect(lackOf(by, file)).toBe('');
      const { legend } = colorItems(tile, laidOut, by, file, SITES, THEME, null);
      expect(legend.map((entry) => entry.bytes)).toEqual(legend.map((entry) => entry.bytes).sort((a, b) => b - a));
      expect(legend.find((entry) => entry.name === name)!.change).toEqual({ text });
      expect(legend.find((entry) => entry.name === 'unknown')?.change ?? null).toBeNull();
      const passes = passingItems(tile, { ...NO_FILTER, text }, file, stackOf)!;
      const codes = by === 'role' ? tile.role : tile.dtype;
      const code = (by === 'role' ? file.roles : file.dtypes).indexOf(name);
      expect([...passes]).toEqual([...tile.row].map((row, i) => Number(row !== NO_ROW && codes[i] === code)));
    }
  });
  it('by role and type say if the recording has none', async () => {
    const file = { ...(await fileMeta()), roles: [], dtypes: ['unknown'] };
    expect([lackOf('role', file), lackOf('dtype', file), lackOf('size', file)]).toEqual(['not recorded', 'not recorded', '']);
    expect(lackOf('role', { ...file, categories: [] })).toBe(''); // not known yet
    expect(colorItems(tile, laidOut, 'role', file, SITES, THEME, null).legend.map(({ name, change }) => [name, change])).toEqual([['why memory is alive was not recorded', null]]);
  });
  it('are paler for items that do not match the filter', async () => {
    const { colors, ofItem } = colorItems(tile, laidOut, 'category', await fileMeta(), SITES, THEME, new Uint8Array(tile.row.length));
    const plain = colorItems(tile, laidOut, 'category', await fileMeta(), SITES, THEME, null);
    for (const [i, row] of tile.row.entries()) {
      if (row !== NO_ROW) expect(luminance(colors[ofItem[i]!]!)).toBeGreaterThan(luminance(plain.colors[plain.ofItem[i]!]!));
    }
  });
  it('have a legend in a window that contains only sums', async () => {
    const none = { ...tile, row: tile.row.slice(0, 0) };
    const rests = layoutStacked(none, await source.curve(QUERY), 0);
    const { legend } = colorItems(none, rests, 'category', await fileMeta(), SITES, THEME, null);
    expect(legend.map((entry) => entry.name)).toContain('parameters');
  });
  it('name the call sites with the most bytes, by which a click filters', () => {
    const sites = topSites(tile);
    expect(sites.length).toBeGreaterThan(2);
    for (const { key, bytes } of sites) {
      let sum = 0;
      for (const [i, row] of tile.row.entries()) if (row !== NO_ROW && tile.key[i] === key) sum += tile.size[i]!;
      expect(bytes).toBe(sum);
    }
    expect(sites.map(({ bytes }) => bytes)).toEqual(sites.map(({ bytes }) => bytes).sort((a, b) => b - a));
    const [first] = sites[0]!.stacks;
    const legend = siteLegend(sites, SITES, (stack) => (stack === first![0] ? null : stackOf(stack)));
    expect(legend.length).toBeLessThan(sites.length); // not known yet
    const last = sites.at(-1)!;
    expect(legend.at(-1)).toMatchObject({ name: siteLabelOf(stackOf, last.stacks), change: { key: last.key } });
  });
  it('have a legend of what is shown, largest first, each with its filter', async () => {
    const { legend } = colorItems(tile, laidOut, 'category', await fileMeta(), SITES, THEME, null);
    expect(legend.map((entry) => entry.bytes)).toEqual(legend.map((entry) => entry.bytes).sort((a, b) => b - a));
    expect(legend.find((entry) => entry.name === 'parameters')!.change).toEqual({ category: 'parameters' });
    const sizes = colorItems(tile, laidOut, 'size', await fileMeta(), SITES, THEME, null).legend;
    expect(sizes.find((entry) => entry.name === '16.0 MiB to 64.0 MiB')!.change).toEqual({ min_size: 16 * 1024 ** 2, max_size: 64 * 1024 ** 2 - 1 });
  });
});
