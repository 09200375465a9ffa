// Tests the list of events beside the segments: it follows the cursor, and the cursor follows it.
// Through both transports.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../src/testing/random';
import { launch, noBrowser, type TestPage } from './page';
import { noPage, writeCases } from './program';
import { writeRandomLog } from './random_log';
import { through, type Transport } from './through';

const SELECTED = '.side-panel [role=row][aria-selected=true]';

/** The texts of the cells of the entry at the cursor: event, time, what, allocated by. */
function entry(test: TestPage): Promise<readonly string[]> {
  return test.page.locator(`${SELECTED} [role=gridcell]`).allTextContents();
}

async function total(test: TestPage): Promise<number> {
  return Number(await test.page.getByRole('grid').getAttribute('aria-rowcount')) - 1;
}

describe.skipIf(noBrowser !== '').each(['view', 'export'] satisfies Transport[])('the list of events, by %s', (transport) => {
  const isSkipped = noPage(transport) !== '';
  let browser: Browser;
  let folder: string;
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-events-'));
    writeCases(folder);
    writeRandomLog(path.join(folder, 'random.jsonl'), new Random(7), 20_000);
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  it.skipIf(isSkipped)('moves the cursor, and shows the state after the entry and its block', async () => {
    await through(transport, browser, folder, ['fragmentation'], async (test) => {
      const at = (await test.state()).cursor!;
      expect((await entry(test))[0]).toBe(String(at));
      await test.page.locator('.side-panel .grid-space [role=row]', { hasText: /alloc 5/ }).last().click();
      await test.idle();
      const clicked = await entry(test);
      const { cursor, selection } = await test.state();
      expect(clicked[0]!.replaceAll(',', '')).toBe(String(cursor));
      expect(selection.kind).toBe('block');
      // The state is that after the event, which is about the same memory.
      expect(await test.page.locator('.event-words').textContent()).toContain(clicked[2]!.replace(/ of .*/, '').replace('segment ', ''));
      const before = await test.page.locator('.segment-spot').textContent();
      await test.press('ArrowDown');
      const next = await entry(test);
      expect(Number(next[0]!.replaceAll(',', ''))).toBeGreaterThanOrEqual(cursor!);
      expect((await test.state()).cursor).toBe(Number(next[0]!.replaceAll(',', '')));
      await test.press('ArrowUp');
      expect(await entry(test)).toEqual(clicked);
      expect(await test.page.locator('.segment-spot').textContent()).toBe(before);
      // A cursor that is moved elsewhere is followed.
      await test.page.getByRole('button', { name: 'Previous event' }).click();
      await test.idle();
      expect((await entry(test))[0]!.replaceAll(',', '')).toBe(String(cursor! - 1));
    }, '#v=1&view=segments&at=40');
  });

  it.skipIf(isSkipped)('lists only the chosen kinds', async () => {
    await through(transport, browser, folder, ['fragmentation'], async (test) => {
      const kinds = test.page.getByRole('group', { name: 'Which events are listed' });
      const all = await total(test);
      const counts = await kinds.getByRole('checkbox').evaluateAll((boxes) => boxes.map((box) => Number(box.parentElement!.textContent.replace(/^.* (?=[\d,]+$)/, '').replaceAll(',', ''))));
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(all);
      await kinds.getByRole('checkbox', { name: 'Allocs' }).click();
      await test.idle();
      expect(await total(test)).toBe(all - counts[0]!);
      await kinds.getByRole('checkbox', { name: 'Frees', exact: false }).first().click();
      await test.idle();
      await test.page.getByRole('grid').press('End');
      await test.idle();
      expect((await entry(test))[2]).not.toMatch(/^(alloc|free) /);
      const words = await test.page.locator('.side-panel .grid-space').textContent();
      expect(words).toContain('failed alloc');
      expect(words).toContain('retry that did not help');
    }, '#v=1&view=segments');
  });

  it.skipIf(isSkipped)('is reached from the panel of a block', async () => {
    await through(transport, browser, folder, ['fragmentation'], async (test) => {
      const row = 20;
      await test.page.getByRole('button', { name: 'Free event' }).click();
      await test.idle();
      const free = await entry(test);
      expect(free[2]).toMatch(/^free/);
      expect((await test.state()).selection).toEqual({ kind: 'block', row });
      await test.page.getByRole('button', { name: 'Alloc event' }).click();
      await test.idle();
      const alloc = await entry(test);
      expect(alloc[2]).toMatch(/alloc/);
      expect(Number(alloc[0])).toBeLessThan(Number(free[0]));
      expect((await test.state()).view).toBe('segments');
    }, '#v=1&view=timeline&sel=block-20');
  });

  it.skipIf(isSkipped)('has any number of entries', async () => {
    await through(transport, browser, folder, ['random'], async (test) => {
      await test.show('Segments');
      const last = await total(test);
      expect(last).toBeGreaterThan(10_000);
      const grid = test.page.getByRole('grid');
      await grid.press('End');
      await test.idle();
      expect(await test.page.locator('.event-place').textContent()).toContain(`${last.toLocaleString('en')} of ${last.toLocaleString('en')}`);
      await grid.press('PageUp');
      await test.idle();
      const [event] = await entry(test);
      expect((await test.state()).cursor).toBe(Number(event!.replaceAll(',', '')));
      expect(await test.page.locator('.side-panel .grid-space [role=row]').count()).toBeLessThan(100);
    });
  });
});
