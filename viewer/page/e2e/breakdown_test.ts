// Tests the breakdown beside the timeline with real events: a box that is dragged out has the sum
// of a stack that is built anew for each event, the panel follows the pointer unless a range is
// selected, moments are compared, and rows have rows in them.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Browser, Locator } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { formatBytes, formatCount, formatDelta } from '../src/base/format_bytes';
import type { RangeBox, RangeTable } from '../src/data/protocol';
import { NO_FILTER, type SelectedRange } from '../src/state/state';
import { blocksOf, recordedFile, recordedSource } from '../src/testing/recordings';
import { launch, noBrowser, recordedUrl, TestPage } from './page';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const GUTTER = 76; // left of the plot
const NEVER = 0xffffffff;

/** Returns what the blocks in a box of the stacked picture held at their peak, and its event. */
async function slowSum({ from, to }: SelectedRange, { low, high }: RangeBox): Promise<{ readonly bytes: number; readonly event: number; readonly allocations: number }> {
  const { rows, birth, death, size } = await blocksOf(recordedSource());
  const { events } = await recordedFile();
  const durations = rows.map((_, i) => Math.floor(Math.log2(Math.min(death[i]!, events + 1) - birth[i]!)));
  const order = [...rows.keys()].sort((a, b) => durations[b]! - durations[a]! || birth[a]! - birth[b]! || rows[a]! - rows[b]!);
  const inBox = new Set<number>();
  const liveAt = (event: number): number[] => order.filter((i) => birth[i]! <= event && event < (death[i] ?? NEVER));
  for (let event = from; event <= to; ++event) {
    let bottom = 0;
    for (const i of liveAt(event)) {
      if (bottom < high && bottom + size[i]! > low) inBox.add(i);
      bottom += size[i]!;
    }
  }
  let most = { bytes: 0, event: from };
  for (let event = from; event <= to; ++event) {
    const bytes = liveAt(event).reduce((sum, i) => sum + (inBox.has(i) ? size[i]! : 0), 0);
    if (bytes > most.bytes) most = { bytes, event };
  }
  return { ...most, allocations: [...inBox].filter((i) => birth[i]! > from).length };
}

describe.skipIf(noBrowser !== '')('the breakdown', () => {
  let browser: Browser;
  let test: TestPage;
  let panel: Locator;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline&breakdown=1&axis=event`, width: 1600, height: 900 });
    panel = test.page.getByRole('complementary', { name: 'Breakdown' });
  });
  afterEach(() => test.close());

  const plotBox = async (): Promise<{ x: number; y: number; width: number; height: number }> => (await test.page.locator('.plot').boundingBox())!;
  async function drag(from: readonly [number, number], to: readonly [number, number], ...keys: readonly string[]): Promise<void> {
    const { x, y, width, height } = await plotBox();
    const { mouse, keyboard } = test.page;
    for (const key of keys) await keyboard.down(key);
    await mouse.move(x + from[0] * width, y + from[1] * height);
    await mouse.down();
    await mouse.move(x + to[0] * width, y + to[1] * height, { steps: 5 });
    await mouse.up();
    for (const key of keys) await keyboard.up(key);
    await test.idle();
  }
  async function selected(): Promise<SelectedRange> {
    const { selection } = await test.state();
    if (selection.kind !== 'range') throw new Error(`${selection.kind} is selected`);
    return selection;
  }
  const words = async (): Promise<string> => (await panel.locator('.breakdown-words p').textContent())!;
  const rows = (): Locator => panel.locator('.grid-space > .grid-row');

  it('of a box has the sum of its blocks', async () => {
    // So many events that each has its own moment.
    await drag([0.45, 0.6], [0.6, 0.6], 'Control');
    await drag([0.3, 0.55], [0.7, 0.8], 'Shift', 'Control');
    const selection = await selected();
    expect(selection.box).toMatchObject({ axis: 'event', layout: 'stacked' });
    expect(selection.to - selection.from).toBeLessThanOrEqual(256);
    const sum = await slowSum(selection, selection.box!);
    expect(sum.bytes).toBeGreaterThan(0);
    const all = await recordedSource().curve({ file: 0, lane: 0, axis: 'event', from: sum.event, to: sum.event + 1, columns: 1 });
    expect(sum.bytes).toBeLessThan(all.series.get('live')!.max[0]!);
    expect(await words()).toContain(`${formatBytes(sum.bytes)} at its peak (event ${formatCount(sum.event)}), ${formatCount(sum.allocations)} allocation`);
    expect(await words()).toMatch(/^Selected: events .*, between .* and /);
  });

  it('of a band of bytes is of the shown range', async () => {
    const { y, x, height } = await plotBox();
    await test.page.keyboard.down('Shift');
    await test.page.mouse.move(x + GUTTER / 2, y + 0.6 * height);
    await test.page.mouse.down();
    await test.page.mouse.move(x + GUTTER / 2, y + 0.8 * height, { steps: 3 });
    await test.page.mouse.up();
    await test.page.keyboard.up('Shift');
    await test.idle();
    const selection = await selected();
    expect([selection.from, selection.to]).toEqual([0, (await recordedFile()).events]);
    expect(selection.box!.low).toBeLessThan(selection.box!.high);
    expect((await test.state()).band).toBeNull(); // not zoomed
  });

  it('of a box by address has the blocks at these addresses', async () => {
    await test.press('KeyL');
    await drag([0.3, 0.3], [0.6, 0.6], 'Shift', 'Control');
    const { from, to, box } = await selected();
    expect(box!.layout).toBe('address');
    const query = { file: 0, lane: 0, axis: 'event', from: 0, to: (await recordedFile()).events + 1, columns: 8192, layout: 'address', low: box!.low, high: box!.high, rows: 32768 } as const;
    const tile = await recordedSource().blocks(query);
    const born = [...tile.row.keys()].filter((i) => tile.start[i]! > from && tile.start[i]! <= to && tile.end[i]! > from).length;
    expect(await words()).toContain(`${formatCount(born)} allocation`);
  });

  it('follows the pointer, and not if a range is selected', async () => {
    const { x, y, width, height } = await plotBox();
    await test.page.mouse.move(0, 0);
    await test.idle();
    expect(await words()).toMatch(/^The whole recording/);
    await test.page.mouse.move(x + 0.5 * width, y + 0.7 * height);
    await test.idle();
    expect(await words()).toMatch(/^At the pointer, after event /);
    expect(await panel.locator('.grid-head').textContent()).not.toContain('Growth');
    await test.page.mouse.click(x + 0.6 * width, y + 0.7 * height);
    await test.page.mouse.move(0, 0);
    await test.idle();
    expect(await words()).toMatch(/^At the cursor, after event /);
    await drag([0.4, 0.5], [0.6, 0.5], 'Shift');
    expect(await words()).toMatch(/^Selected: /);
  });

  it('follows the range while it is dragged out', async () => {
    const { x, y, width, height } = await plotBox();
    await test.page.keyboard.down('Shift');
    await test.page.mouse.move(x + 0.3 * width, y + 0.5 * height);
    await test.page.mouse.down();
    await test.page.mouse.move(x + 0.5 * width, y + 0.5 * height, { steps: 3 });
    await test.idle();
    expect(await words()).toMatch(/^Selected: events /);
    expect((await test.state()).selection.kind).toBe('none');
    await test.page.mouse.up();
    await test.page.keyboard.up('Shift');
  });

  it('compares the cursors', async () => {
    await test.press('P', 'B', 'Period');
    await panel.getByLabel('Break down').selectOption('compare');
    await test.idle();
    const { base, cursor } = await test.state();
    expect(await words()).toContain(`Changed from event ${formatCount(Math.min(base!, cursor!))} to event ${formatCount(Math.max(base!, cursor!))}`);
    expect(await panel.locator('.grid-head').textContent()).toMatch(/Before.*After.*Growth/);
  });

  it('compares two ranges, with a key or a button, and Back undoes it', async () => {
    await drag([0.1, 0.5], [0.3, 0.5], 'Shift');
    const a = await selected();
    await test.press('Shift+KeyC');
    expect(await test.state()).toMatchObject({ rangeA: { from: a.from, to: a.to, box: null }, selection: { kind: 'none' } });
    await drag([0.5, 0.5], [0.8, 0.5], 'Shift');
    const b = await selected();
    const totalOf = async (range: SelectedRange): Promise<RangeTable> => recordedSource().range({
      file: 0, lane: 0, filter: NO_FILTER, ...range, other: null, within: [], by: 'category', folded: true, sort: 'name', side: 'this', descending: false, offset: 0, limit: 500,
    });
    const [ofA, ofB] = await Promise.all([totalOf(a), totalOf(b)]);
    const difference = ofB.total.bytes - ofA.total.bytes;
    expect(difference).not.toBe(0);
    const sentence = await words();
    expect(sentence).toMatch(new RegExp(`^B, selected: events .*A: events ${formatCount(a.from)} to ${formatCount(a.to)}, `));
    expect(sentence).toContain(`${formatBytes(ofB.total.bytes)} in B, ${formatBytes(Math.abs(difference))} ${difference > 0 ? 'more' : 'less'} than in A`);
    expect(await panel.locator('.grid-head').textContent()).toMatch(/A: at peak.*B: at peak.*More than in A/);
    const inA = new Map(ofA.rows.map(({ name, bytes }) => [name, bytes]));
    const differences = ofB.rows.map(({ name, bytes }) => [name.replaceAll('_', ' '), bytes - (inA.get(name) ?? 0)] as const).sort(([, x], [, y]) => y - x);
    expect(await rows().first().locator('.cell').allTextContents()).toEqual([
      differences[0]![0], ...[inA.get(differences[0]![0].replaceAll(' ', '_')) ?? 0].map(formatBytes), expect.any(String), formatDelta(differences[0]![1]),
    ]);
    await panel.getByLabel('Measure').selectOption('allocations');
    await test.idle();
    expect(await panel.locator('.grid-head').textContent()).toMatch(/A: allocs in .*B: allocs in /);
    await panel.getByRole('button', { name: 'Swap A and B' }).click();
    await test.idle();
    expect(await test.state()).toMatchObject({ rangeA: { from: b.from, to: b.to }, selection: { from: a.from, to: a.to } });
    await rows().first().click();
    await test.idle();
    expect((await test.state()).filter.category).not.toBe('');
    for (let i = 0; i < 2; ++i) {
      await test.page.goBack();
      await test.idle();
    }
    expect(await test.state()).toMatchObject({ rangeA: { from: a.from, to: a.to }, selection: { from: b.from, to: b.to }, filter: NO_FILTER });
    await panel.getByRole('button', { name: 'Remove A' }).click();
    await test.idle();
    expect(await test.state()).toMatchObject({ rangeA: null, breakdown: { of: 'follow' } });
    expect(await words()).toMatch(/^Selected: /);
  });

  it('has rows in rows, by mouse and by keys, which add up and filter', async () => {
    const count = await rows().count();
    const name = (await rows().first().locator('.cell').first().textContent())!;
    await rows().first().locator('.opener').click();
    await test.idle();
    expect(await rows().first().getAttribute('aria-expanded')).toBe('true');
    expect(await rows().count()).toBeGreaterThan(count);
    expect(await rows().nth(1).getAttribute('aria-level')).toBe('2');
    expect((await test.state()).filter.category).toBe('');
    await rows().nth(1).click();
    await test.idle();
    const { filter } = await test.state();
    expect(filter.category.replaceAll('_', ' ')).toBe(name);
    expect(filter.text).not.toBe('');
    await test.press('ArrowRight'); // the row that was clicked is the active one
    expect(await rows().nth(2).getAttribute('aria-level')).toBe('3');
    await test.press('ArrowLeft', 'ArrowLeft', 'ArrowLeft');
    expect(await rows().count()).toBe(count);
  });

  it('has levels that can be chosen and ordered', async () => {
    await panel.getByText('Levels: category').click();
    await panel.getByRole('button', { name: 'Move module up' }).click();
    await panel.getByRole('checkbox', { name: 'category' }).uncheck();
    await panel.getByRole('checkbox', { name: 'line' }).uncheck();
    await test.idle();
    expect((await test.state()).breakdown.levels).toEqual(['module', 'function', 'stack', 'thread', 'stream']);
    expect(await panel.locator('.grid-head').textContent()).toMatch(/^Module/);
  });

  it.each(['light', 'dark'] as const)('passes the rules of accessibility in the %s theme', async (colorScheme) => {
    const compared = '&range_a=30-120&sel=range-200-420&breakdown_of=ranges';
    const page = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline&breakdown=1${compared}`, colorScheme });
    await page.page.locator('.opener').first().click();
    await page.page.locator('.breakdown-levels summary').click();
    await page.idle();
    await page.page.evaluate(AXE);
    const { violations } = await page.page.evaluate(() => (window as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
    const wrong = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`)).filter((each) => !each.includes('class="grid-body"'));
    expect(wrong).toEqual([]);
    await page.close();
  });
});
