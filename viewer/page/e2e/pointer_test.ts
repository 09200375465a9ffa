// Tests the pointer on the timeline, its overview and its legend with real events: drags, wheel
// turns and clicks change the state as intended, and the clipboard gets what is selected.

import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { domainOf, type Range } from '../src/state/navigator';
import { recordedUrl, launch, noBrowser, TestPage } from './page';

const GUTTER = 76; // left of the plot, whose right end is 10 pixels before that of the canvas
const RIGHT = 10;
const EDGE = 10; // beside the overview

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

describe.skipIf(noBrowser !== '')('the pointer', () => {
  let browser: Browser;
  let test: TestPage;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline` });
  });
  afterEach(() => test.close());

  /** Returns the part that has positions: a share of its width is a share of the window. */
  async function plot(): Promise<Box> {
    const { x, y, width, height } = (await test.page.locator('.plot').boundingBox())!;
    return { x: x + GUTTER, y, width: width - GUTTER - RIGHT, height };
  }
  async function overview(): Promise<Box> {
    const { x, y, width, height } = (await test.page.locator('.minimap').boundingBox())!;
    return { x: x + EDGE, y, width: width - 2 * EDGE, height };
  }
  type Place = readonly [x: number, y: number]; // shares of a box
  async function drag(box: Box, [x0, y0]: Place, [x1, y1]: Place, ...keys: readonly string[]): Promise<void> {
    const { mouse, keyboard } = test.page;
    for (const key of keys) await keyboard.down(key);
    await mouse.move(box.x + x0 * box.width, box.y + y0 * box.height);
    await mouse.down();
    await mouse.move(box.x + x1 * box.width, box.y + y1 * box.height, { steps: 5 });
    await mouse.up();
    for (const key of keys) await keyboard.up(key);
    await test.idle();
  }
  const rangeNow = async (): Promise<Range> => (await test.state()).range;
  const at = (range: Range, share: number): number => range.from + share * (range.to - range.from);
  /** Checks that two positions differ by at most two pixels of a window of that size. */
  function expectNear(actual: number, expected: number, range: Range): void {
    expect(Math.abs(actual - expected)).toBeLessThan(((range.to - range.from) * 2) / 1000 + 1);
  }
  /** Zooms to the middle third, so that there is something on both sides. */
  async function zoomIn(): Promise<Range> {
    const whole = await rangeNow();
    await drag(await plot(), [1 / 3, 0.6], [2 / 3, 0.6], 'Control');
    const range = await rangeNow();
    expectNear(range.from, at(whole, 1 / 3), whole);
    expectNear(range.to, at(whole, 2 / 3), whole);
    return range;
  }
  /** Returns a point at which there is a block. */
  async function blockPlace(): Promise<Place> {
    const { x, y, width, height } = await plot();
    for (const share of [0.8, 0.7, 0.6]) {
      await test.page.mouse.click(x + 0.5 * width, y + share * height);
      await test.idle();
      if ((await test.state()).selection.kind === 'block') return [0.5, share];
    }
    throw new Error('no click hit a block');
  }

  it('with Shift measures, and F shows what was measured', async () => {
    const whole = await rangeNow();
    await drag(await plot(), [0.6, 0.5], [0.2, 0.6], 'Shift');
    const { selection, base, cursor, range } = await test.state();
    expect(range).toEqual(whole);
    if (selection.kind !== 'range') throw new Error(`${selection.kind} is selected`);
    expectNear(selection.from, at(whole, 0.2), whole);
    expectNear(selection.to, at(whole, 0.6), whole);
    expect([base, cursor]).toEqual([selection.from, selection.to]);
    await test.press('KeyF');
    const shown = await rangeNow();
    expect([shown.from <= selection.from, shown.to >= selection.to]).toEqual([true, true]);
    expect(shown.to - shown.from).toBeLessThan((selection.to - selection.from) * 1.3);
  });

  it('with Shift opens the breakdown of the range, in which a row filters', async () => {
    await drag(await plot(), [0.2, 0.5], [0.6, 0.6], 'Shift');
    const panel = test.page.getByRole('complementary', { name: 'Breakdown' });
    expect(await panel.textContent()).toMatch(/Selected: events .*at its peak/);
    expect(await test.page.locator('.drawer').count()).toBe(0);
    const rows = panel.locator('.grid-space > .grid-row');
    const count = await rows.count();
    const name = (await rows.first().locator('.cell').first().textContent())!.trim();
    await rows.first().click();
    await test.idle();
    expect((await test.state()).filter.category.replaceAll('_', ' ')).toBe(name);
    expect(await rows.count()).toBe(count);
    expect(await rows.first().getAttribute('aria-selected')).toBe('true');
    await rows.first().click();
    await test.idle();
    expect((await test.state()).filter.category).toBe('');

    await test.page.context().grantPermissions(['clipboard-write', 'clipboard-read']);
    await panel.getByRole('button', { name: 'Copy' }).click();
    await test.page.getByText('Copied').waitFor({ state: 'attached' });
    const copied = await test.page.evaluate(() => navigator.clipboard.readText());
    expect(copied.split('\r\n')).toHaveLength(count + 2); // a heading, and nothing after the last
    const [download] = await Promise.all([test.page.waitForEvent('download'), panel.getByRole('button', { name: 'Download' }).click()]);
    expect(download.suggestedFilename()).toMatch(/\.category\.\d+-\d+\.csv$/);
    await test.press('KeyQ');
    expect(await panel.count()).toBe(0);
  });

  it('with Shift shows the measurement while it is dragged', async () => {
    const { x, y, width, height } = await plot();
    await test.page.keyboard.down('Shift');
    await test.page.mouse.move(x + 0.2 * width, y + 0.5 * height);
    await test.page.mouse.down();
    await test.page.mouse.move(x + 0.5 * width, y + 0.5 * height, { steps: 3 });
    expect(await test.page.locator('.tooltip').textContent()).toMatch(/events.*live [+-]?[\d.]+/);
    await test.page.mouse.up();
    await test.page.keyboard.up('Shift');
  });

  it('with Ctrl zooms into the box, in bytes too', async () => {
    const whole = await rangeNow();
    await drag(await plot(), [0.25, 0.4], [0.75, 0.8], 'Control');
    const { range, band } = await test.state();
    expectNear(range.from, at(whole, 0.25), whole);
    expectNear(range.to, at(whole, 0.75), whole);
    expect(band!.high).toBeGreaterThan(band!.low);
  });

  it('drags the window along, but not beyond the recording', async () => {
    const range = await zoomIn();
    await drag(await plot(), [0.5, 0.6], [0.75, 0.6]);
    const moved = await rangeNow();
    expectNear(moved.from, range.from - (range.to - range.from) / 4, range);
    expect(moved.to - moved.from).toBeCloseTo(range.to - range.from);
    expect((await test.state()).selection.kind).toBe('none');
    for (let i = 0; i < 3; ++i) await drag(await plot(), [0.1, 0.6], [0.9, 0.6]);
    expect((await rangeNow()).from).toBe(0);
  });

  it('zooms with the wheel at its position, and pans with Shift', async () => {
    const { x, y, width, height } = await plot();
    const whole = await rangeNow();
    await test.page.mouse.move(x + 0.3 * width, y + 0.6 * height);
    for (let i = 0; i < 3; ++i) await test.page.mouse.wheel(0, -300);
    await test.idle();
    const near = await rangeNow();
    expect(near.to - near.from).toBeLessThan((whole.to - whole.from) / 3);
    expectNear(at(near, 0.3), at(whole, 0.3), whole);
    await test.page.keyboard.down('Shift');
    await test.page.mouse.wheel(0, 300);
    await test.page.keyboard.up('Shift');
    await test.idle();
    const later = await rangeNow();
    expect(later.from).toBeGreaterThan(near.from);
    expect(later.to - later.from).toBeCloseTo(near.to - near.from);
    await test.page.mouse.wheel(0, 5000);
    await test.idle();
    expect(await rangeNow()).toEqual(whole);
  });

  it('zooms in bytes with the wheel over the numbers beside the plot', async () => {
    const { x, y, height } = await plot();
    const whole = await rangeNow();
    await test.page.mouse.move(x - 20, y + 0.7 * height);
    await test.page.mouse.wheel(0, -400);
    await test.idle();
    const { range, band } = await test.state();
    expect(range).toEqual(whole);
    expect(band).not.toBeNull();
  });

  it('with a double click on the plot or the overview shows the whole recording', async () => {
    const whole = await rangeNow();
    for (const place of [plot, overview]) {
      await zoomIn();
      const { x, y, width, height } = await place();
      await test.page.mouse.dblclick(x + 0.5 * width, y + 0.6 * height);
      await test.idle();
      expect(await rangeNow()).toEqual(whole);
    }
  });

  // The first click opens the details of a block, so that the legend or the drawer is now at the
  // click position.
  it('with a double click presses nothing that appears under it', async () => {
    const whole = await rangeNow();
    const { x, y, width, height } = await plot();
    for (const share of [0.55, 0.6, 0.65, 0.9]) {
      await test.press('Escape');
      await zoomIn();
      await test.page.mouse.dblclick(x + 0.1 * width, y + share * height);
      await test.idle();
      const { range, filter } = await test.state();
      expect([range, filter.category]).toEqual([whole, '']);
    }
  });

  it('draws out a range on the overview, and drags it', async () => {
    const domain = domainOf((await test.state()).meta!.files[0]!, 'event');
    await drag(await overview(), [0.7, 0.5], [0.5, 0.5]);
    const drawn = await rangeNow();
    expectNear(drawn.from, at(domain, 0.5), domain);
    expectNear(drawn.to, at(domain, 0.7), domain);
    await drag(await overview(), [0.6, 0.5], [0.4, 0.5]);
    const moved = await rangeNow();
    expectNear(moved.from, at(domain, 0.3), domain);
    expect(moved.to - moved.from).toBeCloseTo(drawn.to - drawn.from);
  });

  it('on the legend filters by an entry, and a second click removes the filter', async () => {
    const entry = test.page.getByRole('group', { name: 'Legend' }).getByRole('button', { name: 'activations' });
    await entry.click();
    await test.idle();
    expect((await test.state()).filter.category).toBe('activations');
    expect(await entry.getAttribute('aria-pressed')).toBe('true');
    await entry.click();
    await test.idle();
    expect((await test.state()).filter.category).toBe('');
  });

  it('shows what is under it, and nothing after it has left', async () => {
    const { x, y, width, height } = await plot();
    const [share, top] = await blockPlace();
    const { selection } = await test.state();
    await test.press('Escape');
    await test.page.mouse.move(x + share * width + 1, y + top * height);
    await test.idle();
    const words = await test.page.locator('.tooltip').textContent();
    expect(selection.kind).toBe('block');
    expect(words).toMatch(/[\d.]+ MiB .*bytes.*stream/);
    await test.page.mouse.move(5, 5);
    await test.idle();
    expect(await test.page.locator('.tooltip').count()).toBe(0);
  });

  it('runs a command from the palette by name', async () => {
    await test.page.getByRole('button', { name: 'Commands' }).click();
    await test.page.getByRole('dialog').getByRole('combobox').fill('stacked or by address');
    await test.press('Enter');
    expect((await test.state()).layout).toBe('address');
    expect(await test.page.getByRole('dialog').count()).toBe(0);
  });

  it('finds a function in the palette', async () => {
    await test.page.getByRole('button', { name: 'Commands' }).click();
    await test.page.getByRole('dialog').getByRole('combobox').fill('model.py)');
    await test.page.getByRole('option').filter({ hasText: 'function' }).first().click();
    await test.idle();
    expect((await test.state()).filter.text).toMatch(/ \(model\.py\)$/);
  });

  it('copies the selection as text and as Markdown', async () => {
    await test.page.context().grantPermissions(['clipboard-write', 'clipboard-read']);
    const copied = (): Promise<string> => test.page.evaluate(() => navigator.clipboard.readText());
    await blockPlace();
    const facts = (await test.page.locator('.drawer').textContent())!;
    const address = /0x[0-9a-f]{12}/.exec(facts)![0];
    await test.page.getByRole('button', { name: 'Copy text' }).click();
    await test.page.getByText('Copied').waitFor({ state: 'attached' });
    const text = await copied();
    expect(text).toContain(address);
    expect(text).toMatch(/allocated at:\n.*\n.*\.py:\d+/);
    await test.page.getByRole('button', { name: 'Copy Markdown' }).click();
    await test.idle();
    const markdown = await copied();
    expect(markdown).toContain(address);
    expect(markdown).not.toBe(text);
  });

  it('copies a frame of a flame graph', async () => {
    await test.page.context().grantPermissions(['clipboard-write', 'clipboard-read']);
    await test.show('Flame graph');
    await test.page.getByRole('tree').focus();
    await test.press('ArrowDown');
    await test.page.getByRole('button', { name: 'Copy', exact: true }).click();
    await test.page.getByText('Copied').waitFor({ state: 'attached' });
    const words = (await test.page.locator('.flame-active output').textContent())!;
    const [head, ...callers] = (await test.page.evaluate(() => navigator.clipboard.readText())).split('\n');
    expect(head).toBe(words);
    for (const caller of callers) expect(caller).toMatch(/^ {2}< ./);
  });
});
