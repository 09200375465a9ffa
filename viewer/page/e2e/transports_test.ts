// Tests the page with its real transports, over recordings whose answers are known: `gpumemtrace
// view`, and the file of `export --format html` without any network.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VIEWS } from '../src/app/views';
import { NO_FILTER } from '../src/state/state';
import { launch, noBrowser, type TestPage } from './page';
import { noPage, run, writeCases } from './program';
import { through as throughTransport } from './through';

const ANSWERS = [
  ['leaks', 'Leaks', 'leak'],
  ['oom', 'Out of memory', 'fragmentation'],
  ['ledger', 'Ledger', 'clean'],
  ['frag', 'Fragmentation', 'clean'],
] as const;
const ANSWER_MS = 70; // several frames
const LONGEST_WAIT_MS = 140; // slightly less than in timeline_canvas.ts

declare global {
  interface Window {
    gmtSeen?: { clicked: number; stack: number; drawn: number[] }; // times
  }
}

/**
 * Clicks on the timeline until a block is hit. Records when its stack appeared and when the
 * picture's size changed.
 */
async function clickABlock(test: TestPage): Promise<void> {
  await test.page.evaluate(() => {
    const seen = { clicked: 0, stack: Infinity, drawn: [] as number[] };
    window.gmtSeen = seen;
    window.addEventListener('pointerup', () => Object.assign(seen, { clicked: performance.now(), drawn: [] }), true);
    const canvas = document.querySelector('.plot canvas')!;
    new MutationObserver(() => seen.drawn.push(performance.now())).observe(canvas, { attributeFilter: ['width', 'height'] });
    new MutationObserver(() => {
      if (seen.stack === Infinity && document.querySelector('.drawer .stack') !== null) seen.stack = performance.now();
    }).observe(document.body, { childList: true, subtree: true });
  });
  const plot = (await test.page.locator('.plot').boundingBox())!;
  for (const y of [0.8, 0.6, 0.4]) {
    for (const x of [0.3, 0.5, 0.7, 0.9]) {
      await test.page.mouse.click(plot.x + plot.width * x, plot.y + plot.height * y);
      await test.idle();
      if ((await test.state()).selection.kind === 'block') return;
    }
  }
  throw new Error('no click hit a block');
}

for (const verb of ['view', 'export'] as const) {
  const reason = noBrowser === '' ? noPage(verb) : noBrowser;
  if (reason !== '') console.log(reason);
  describe.skipIf(reason !== '')(verb === 'view' ? 'gpumemtrace view' : 'the exported file', () => {
    let browser: Browser;
    let folder: string;
    beforeAll(async () => {
      browser = await launch();
      folder = mkdtempSync(path.join(tmpdir(), 'gmt-transports-'));
      writeCases(folder);
    });
    afterAll(async () => {
      await browser.close();
      rmSync(folder, { recursive: true });
    });

    const through = (names: readonly string[], use: (test: TestPage) => Promise<void>): Promise<void> => throughTransport(verb, browser, folder, names, use);

    it('shows every view of a recording', async () => {
      await through(['leak'], async (test) => {
        for (const { title } of Object.values(VIEWS)) {
          await test.show(title);
          expect(await test.page.locator('main').textContent(), title).not.toBe('');
          expect(await test.page.locator('main .failed').count(), title).toBe(0);
        }
      });
    });

    it.each(ANSWERS)('%s: the headline is what the program prints', async (name, title, recording) => {
      const printed = run(folder, name, `${recording}.jsonl`);
      await through([recording], async (test) => {
        await test.show(title);
        expect(printed.split('\n')[0]).toBe(await test.page.locator('.answer h2').textContent());
      });
    });

    it('is consistent: table, flame graph and lane hold the same at the peak', async () => {
      await through(['leak'], async (test) => {
        const { meta } = await test.state();
        expect(meta!.files[0]!.lanes[0]!.peak_bytes).toBeGreaterThan(0);
        await test.show('Flame graph');
        const flame = /all: ([\d.]+ \w+)/.exec(await test.snapshot())?.[1];
        await test.show('Table');
        const table = /rows?: ([\d.]+ \w+) in/.exec(await test.snapshot())?.[1];
        expect(table).toBeDefined();
        expect(flame).toBe(table);
      });
    });

    it('keeps the bytes of a row that is filtered by, for every grouping', async () => {
      await through(['leak'], async (test) => {
        await test.show('Table');
        const row = test.page.getByRole('row').nth(1);
        // Name, bytes, blocks.
        const cells = (): Promise<(string | null)[]> => Promise.all([0, 1, 3].map((cell) => row.getByRole('gridcell').nth(cell).textContent()));
        for (const by of ['stack', 'function', 'file', 'category', 'size', 'stream', 'thread']) {
          await test.page.getByLabel('One row per').selectOption(by);
          await test.idle();
          const before = await cells();
          await row.click();
          await test.page.getByRole('button', { name: /^Only (the selected row's blocks|blocks through the selected row's)/ }).click();
          await test.idle();
          expect((await test.state()).filter, by).not.toEqual(NO_FILTER);
          expect([await cells(), await row.getAttribute('aria-selected')], by).toEqual([before, 'true']);
          await test.page.getByRole('button', { name: 'Clear filter' }).click();
        }
      });
    });

    it('shows on the timeline the same filtered bytes as the table', async () => {
      await through(['leak'], async (test) => {
        await test.show('Timeline');
        await test.page.getByLabel('Filter by frame').fill('loss_of');
        await test.idle();
        const words = /filter: ([\d.]+ \w+) at the peak/.exec((await test.page.locator('.filter-entry').textContent())!)?.[1];
        expect(words).toBeDefined();
        await test.show('Table');
        expect(/rows?: ([\d.]+ \w+) in/.exec(await test.snapshot())?.[1]).toBe(words);
      });
    });

    it('links a leak to its blocks', async () => {
      await through(['leak'], async (test) => {
        await test.show('Leaks');
        await test.page.getByRole('region', { name: 'Suspects' }).getByRole('link').first().click();
        await test.idle();
        const { view, filter, selection } = await test.state();
        expect(view).toBe('timeline');
        expect(filter.stack).toBe(25);
        expect(selection).toEqual({ kind: 'stack', stack: 25 });
      });
    });

    it('links expected growth to what its function holds, and a minimum to its device', async () => {
      await through(['leak'], async (test) => {
        await test.show('Leaks');
        await test.page.getByRole('region', { name: 'Expected growth' }).getByRole('link').first().click();
        await test.idle();
        const { view, filter } = await test.state();
        expect([view, filter]).toEqual(['timeline', { ...NO_FILTER, text: '_init_group' }]);
        expect(await test.page.locator('.filter-entry').textContent()).toMatch(/filter: 4\.00 GiB at the peak/);
        await test.show('Leaks');
        await test.page.getByRole('region', { name: /^Minimum/ }).getByRole('link').first().click();
        await test.idle();
        const after = await test.state();
        expect([after.view, after.filter, after.lane]).toEqual(['timeline', NO_FILTER, 0]);
      });
    });

    // The drawer reduces the height of the plot, and drawing a picture may take longer than the
    // answer.
    it.skipIf(verb === 'export')('shows what was clicked before the picture in its new size', async () => {
      await through(['leak'], async (test) => {
        await test.page.route(/api\/block\?/, async (route) => {
          await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
          await route.continue();
        });
        await test.show('Timeline');
        await clickABlock(test);
        const { clicked, stack, drawn } = await test.page.evaluate(() => window.gmtSeen!);
        expect(drawn.length).toBeGreaterThan(0);
        // On a slow machine it stopped waiting.
        for (const at of drawn) expect(at > stack || at - clicked > LONGEST_WAIT_MS).toBe(true);
      });
    });

    it('compares two recordings', async () => {
      await through(['base', 'changed'], async (test) => {
        await test.show('Compare');
        expect(await test.page.locator('.answer h2').textContent()).toMatch(/\+1\.09 GiB/);
        expect(await test.snapshot()).toMatch(/Ema\.__init__/);
        // The filter selects rows, and the page says what it does not apply to.
        await test.page.getByLabel('Filter by frame').fill('Ema');
        await test.idle();
        const rows = test.page.locator('.answer-section tbody tr');
        expect(await rows.count()).toBe(3);
        expect(await rows.nth(1).textContent()).toContain('matching the filter: 1 changed stack');
        expect(await test.page.getByRole('note').textContent()).toContain('the chart shows all memory');
        await test.page.getByRole('note').getByRole('button').click();
        // A call site has a different stack number in each recording, but the same key.
        await test.page.getByLabel('Recording', { exact: true }).selectOption({ label: 'changed.jsonl' });
        await test.show('Timeline');
        await test.page.getByLabel('Colour').selectOption('stack');
        await test.idle();
        await test.page.getByRole('group', { name: 'Legend' }).getByRole('button', { name: /Ema/ }).click();
        expect((await test.state()).filter.key).not.toBeNull();
        await test.show('Compare');
        expect(await rows.count()).toBe(3);
        expect(await rows.first().textContent()).toContain('Ema.__init__');
        await test.page.getByRole('note').getByRole('button').click();
        await test.page.getByLabel('Recording', { exact: true }).selectOption({ label: 'base.jsonl' });
        await test.idle();
        await test.page.getByRole('button', { name: 'Flame graph of the difference' }).click();
        await test.idle();
        expect(await test.snapshot()).toMatch(/"all: \+1\.09 GiB, from 9\.52 GiB to 10\.6 GiB"/);
        expect(await test.page.locator('main').textContent()).toMatch(/changed\.jsonl after its event \d+, minus base\.jsonl/);
      });
    });
  });
}
