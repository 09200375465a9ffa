// Every view over a generated recording: what it says, that its choices work by mouse and by keys, that
// nothing fails in the console and nothing is asked for elsewhere.

import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { generatedUrl, launch, noBrowser, TestPage } from './page';

describe.skipIf(noBrowser !== '')('views', () => {
  let browser: Browser;
  let test: TestPage;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    test = await TestPage.open(browser, { url: generatedUrl() });
  });
  afterEach(async () => {
    expect(test.errors).toEqual([]);
    expect(test.strayRequests).toEqual([]);
    await test.close();
  });

  it('flame graph: walks, zooms and finds by keys', async () => {
    await test.show('Flame graph');
    expect(await test.snapshot()).toMatch(/treeitem "all: .* blocks" \[expanded\]/);
    await test.page.getByRole('tree').focus();
    await test.press('ArrowDown');
    const child = await test.page.locator('output').textContent();
    expect(child).toMatch(/%/);
    await test.press('Enter');
    const { flame } = await test.state();
    expect(flame.focus).not.toBe(0);
    await test.press('Backspace');
    expect((await test.state()).flame.focus).toBe(0);
    await test.page.getByLabel('Find frames').fill('forward');
    await test.idle();
    expect(await test.snapshot()).toMatch(/frames match|No frame matches/);
  });

  it('flame graph: the same picture from its link', async () => {
    await test.show('Flame graph');
    await test.page.getByRole('tree').focus();
    await test.press('ArrowDown', 'Enter');
    await test.page.getByLabel('Inverted: callees first').check();
    await test.idle();
    const url = test.page.url();
    const first = await test.page.locator('.flame canvas').screenshot();
    const again = await TestPage.open(browser, { url });
    expect((await again.state()).flame.inverted).toBe(true);
    expect((await again.page.locator('.flame canvas').screenshot()).equals(first)).toBe(true);
    await again.close();
  });

  it('flame graph: only blocks through a frame', async () => {
    await test.show('Flame graph');
    await test.page.getByRole('tree').focus();
    await test.press('ArrowDown');
    await test.page.getByRole('button', { name: 'Only blocks through it' }).click();
    await test.idle();
    expect((await test.state()).filter.text).not.toBe('');
  });

  it('table: sorts, groups, opens a row and filters by it', async () => {
    await test.show('Table');
    const grid = test.page.getByRole('grid');
    expect(Number(await grid.getAttribute('aria-rowcount'))).toBeGreaterThan(2);
    await test.page.getByRole('button', { name: /^Blocks/ }).click();
    await test.idle();
    expect((await test.state()).table.sort).toBe('blocks');
    await grid.focus();
    await test.press('ArrowDown', 'Enter');
    const { selection } = await test.state();
    expect(selection.kind).toBe('stack');
    await test.page.getByRole('button', { name: "Only the selected row's blocks" }).click();
    await test.idle();
    expect((await test.state()).filter.stack).not.toBeNull();
    expect(Number(await grid.getAttribute('aria-rowcount'))).toBe(2);
  });

  it('table: goes to the last of all blocks and keeps few rows in the page', async () => {
    await test.show('Table');
    await test.page.getByLabel('One row per').selectOption('block');
    await test.idle();
    const grid = test.page.getByRole('grid');
    await grid.focus();
    await test.press('End');
    const count = Number(await grid.getAttribute('aria-rowcount'));
    const last = test.page.locator(`[role=row][aria-rowindex="${count}"]`);
    expect(await last.locator('[role=gridcell]').first().textContent()).not.toBe('…');
    expect(await test.page.locator('[role=row]').count()).toBeLessThan(60);
  });

  it('segments: goes to events, steps and blocks', async () => {
    await test.show('Segments');
    const words = test.page.locator('.event-words');
    const atPeak = await words.textContent();
    await test.page.getByRole('button', { name: 'Previous event' }).click();
    await test.idle();
    expect(await words.textContent()).not.toBe(atPeak);
    await test.press('.');
    expect(await words.textContent()).toBe(atPeak);
    await test.page.getByLabel('Step', { exact: true }).fill('3');
    await test.press('Enter');
    const { cursor, meta } = await test.state();
    expect(cursor).toBe(meta!.files[0]!.steps.begin[2]! + 1);
    await test.page.getByRole('tree').focus();
    await test.press('Home', 'ArrowRight');
    expect(await test.snapshot('.segments-view')).toMatch(/treeitem "(Block|Hole|Freed block)[^"]*" \[level=3\] \[selected\]|treeitem "(Block|Hole)/);
  });

  it('compare: draws both and leads to the other recording', async () => {
    await test.show('Compare');
    expect(await test.snapshot()).toMatch(/img "Live memory of both: .* peaks at /);
    await test.page.getByRole('button', { name: 'Flame graph of the difference' }).click();
    await test.idle();
    const { view, flame } = await test.state();
    expect([view, flame.compare]).toEqual(['flame', true]);
  });

  it.each(['Leaks', 'Out of memory', 'Ledger', 'Fragmentation'])('%s: has a headline and the printed text', async (title) => {
    await test.show(title);
    expect(await test.page.locator('.answer h2').textContent()).not.toBe('');
    await test.page.getByText('As the program prints it').click();
    expect(await test.page.locator('.answer pre').isVisible()).toBe(true);
  });
});
