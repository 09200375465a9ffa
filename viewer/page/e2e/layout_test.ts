// Tests that the timeline leaves most of a small window to its plot.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isSampled } from '../src/data/protocol';
import { areasOf } from '../src/views/timeline/areas';
import { launch, noBrowser, recordedUrl, TestPage } from './page';

const [WIDTH, HEIGHT] = [1280, 720];
const SHARE = 0.6;

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
});
