// Tests that the timeline leaves most of a small window to its plot, and that answers use the width
// of a window.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isSampled } from '../src/data/protocol';
import { areasOf } from '../src/views/timeline/areas';
import { launch, noBrowser, recordedUrl, TestPage } from './page';

const [WIDTH, HEIGHT] = [1280, 720];
const SHARE = 0.6;
const SHARE_BESIDE = 0.45; // share of the window's height with the details of a block open

describe.skipIf(noBrowser !== '')(`the timeline at ${WIDTH}x${HEIGHT}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => browser.close());

  it.each(['category', 'role', 'dtype', 'stack'])('is mostly plot, coloured by %s', async (color) => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline&color=${color}`, width: WIDTH, height: HEIGHT });
    await test.untilReady();
    const file = (await test.state()).meta!.files[0]!;
    const lane = file.lanes[0]!;
    // It has everything that is drawn beside the plot.
    expect([file.steps.source !== '', file.phases.length > 0, file.ranges.length > 0, lane.series.some(isSampled)]).toEqual([true, true, true, true]);
    const box = (await test.page.locator('.plot').boundingBox())!;
    expect(box.y + box.height).toBeLessThanOrEqual(HEIGHT);
    const { plot } = areasOf(file, lane, box.width, box.height);
    expect(plot.height / HEIGHT).toBeGreaterThanOrEqual(SHARE);
    await test.close();
  });

  it('is still mostly plot beside the details of a block', async () => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline`, width: WIDTH, height: HEIGHT });
    await test.untilReady();
    await test.press('P', 'K');
    const file = (await test.state()).meta!.files[0]!;
    const shareOfPlot = async (): Promise<number> => {
      const box = (await test.page.locator('.plot').boundingBox())!;
      return areasOf(file, file.lanes[0]!, box.width, box.height).plot.height / test.page.viewportSize()!.height;
    };
    const details = test.page.getByRole('complementary', { name: 'Details' });
    expect(await shareOfPlot()).toBeGreaterThanOrEqual(SHARE_BESIDE);
    const [plot, beside] = [(await test.page.locator('.plot').boundingBox())!, (await details.boundingBox())!];
    expect(beside.x).toBe(plot.x + plot.width);
    expect(await details.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    await details.getByRole('separator').focus();
    await test.press('ArrowLeft');
    expect((await details.boundingBox())!.width).toBe(beside.width + 24);
    expect((await test.state()).range).toEqual({ from: 0, to: file.events + 1 });
    // Below where there is room, or where the breakdown is beside.
    await test.press('Q');
    expect((await details.boundingBox())!.width).toBe(WIDTH);
    await test.press('Q');
    await test.page.setViewportSize({ width: 1600, height: 900 });
    await test.idle();
    expect((await details.boundingBox())!.width).toBe(1600);
    await test.close();
  });

  it('shows the whole name of what is chosen', async () => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline&whatif=expandable_segments:True`, width: WIDTH, height: HEIGHT });
    await test.untilReady();
    const missing = await test.page.locator('.timeline > .bar select').evaluateAll((selects) =>
      selects.map((each) => {
        const select = each as HTMLSelectElement;
        const context = document.createElement('canvas').getContext('2d')!;
        context.font = getComputedStyle(select).font;
        return context.measureText(select.selectedOptions[0]!.text).width - select.clientWidth;
      }),
    );
    expect(missing).toHaveLength(4);
    expect(Math.max(...missing)).toBeLessThan(0);
    await test.close();
  });
});

describe.skipIf(noBrowser !== '')(`dialogs at ${WIDTH}x${HEIGHT}`, () => {
  let browser: Browser;
  let test: TestPage;
  beforeAll(async () => {
    browser = await launch();
    test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline`, width: WIDTH, height: HEIGHT });
    await test.untilReady();
  });
  afterAll(async () => {
    await test.close();
    await browser.close();
  });

  it.each(['Timeline', 'Flame graph', 'Table', 'Segments', 'Lanes'])('show all keys of %s without scrolling', async (view) => {
    await test.show('Timeline');
    await test.press('Escape', 'P', 'K'); // a block, which has keys of its own
    await test.show(view);
    await test.press('?');
    const hidden = await test.page.locator('dialog').evaluate((dialog) => [dialog.scrollHeight - dialog.clientHeight, dialog.scrollWidth - dialog.clientWidth]);
    expect(hidden).toEqual([0, 0]);
    await test.press('Escape');
  });

  it('show the whole outline of a focused field', async () => {
    await test.press('Control+Shift+P');
    const [heading, field] = [(await test.page.locator('dialog header').boundingBox())!, (await test.page.locator('dialog input').boundingBox())!];
    const outline = await test.page.locator('dialog input').evaluate((input) => {
      const { outlineWidth, outlineOffset } = getComputedStyle(input);
      return parseFloat(outlineWidth) + parseFloat(outlineOffset);
    });
    expect(outline).toBeGreaterThan(0);
    expect(field.y - outline).toBeGreaterThanOrEqual(heading.y + heading.height);
    await test.press('Escape');
  });
});

describe.skipIf(noBrowser !== '')(`a lane at ${WIDTH}x${HEIGHT}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => browser.close());

  it('has room for the longest words beside its buttons', async () => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=lanes`, width: WIDTH, height: HEIGHT });
    await test.untilReady();
    const missing = await test.page.locator('.lane-foot p').first().evaluate((line) => {
      line.querySelector('output')!.textContent = 'not recorded';
      line.querySelector('.muted')!.textContent = 'peak 88.8 MiB';
      return line.scrollWidth - line.clientWidth;
    });
    expect(missing).toBe(0);
    await test.close();
  });
});

describe.skipIf(noBrowser !== '').each([[1600, 900], [1280, 720]])('answers at %ix%i', (width, height) => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => browser.close());

  it.each(['leaks', 'ledger', 'frag', 'compare'])('show a chart and rows of %s on the first screen', async (view) => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=${view}`, width, height });
    await test.untilReady();
    const [chart, row] = [test.page.locator('.answer .chart, .answer canvas').first(), test.page.locator('.answer tbody tr').first()];
    const [drawn, listed] = [(await chart.boundingBox())!, (await row.boundingBox())!];
    expect(drawn.y + drawn.height).toBeLessThanOrEqual(height);
    expect(listed.y + listed.height).toBeLessThanOrEqual(height);
    // A comparison needs the whole width of a small window for either.
    if (view !== 'compare' || width >= 1400) expect(listed.x).toBeGreaterThanOrEqual(drawn.x + drawn.width);
    const overflows = await test.page.locator('.answer .scroll-x').evaluateAll((tables) => tables.map((table) => table.scrollWidth - table.clientWidth));
    expect(Math.max(...overflows)).toBeLessThanOrEqual(0);
    await test.close();
  });
});
