// The page through its real doors, over recordings whose answers are known: `gpumemtrace view`, and the
// file of `export --format html` without any network.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VIEWS } from '../src/app/views';
import { launch, noBrowser, TestPage } from './page';
import { Door, noDoor, run, writeCases } from './program';

const ANSWERS = [
  ['leaks', 'Leaks', 'leak'],
  ['oom', 'Out of memory', 'fragmentation'],
  ['ledger', 'Ledger', 'clean'],
  ['frag', 'Fragmentation', 'clean'],
] as const;
const NOT_READY = 120_000; // ms: a hang, not a speed

async function untilReady(test: TestPage): Promise<void> {
  await test.page.waitForFunction(
    () => window.gmtTest?.state().progress?.files.every((file) => file.state === 'ready' || file.state === 'failed') ?? false,
    undefined,
    { timeout: NOT_READY },
  );
  await test.idle();
}

for (const verb of ['view', 'export'] as const) {
  const reason = noBrowser === '' ? noDoor(verb) : noBrowser;
  if (reason !== '') console.log(reason);
  describe.skipIf(reason !== '')(verb === 'view' ? 'gpumemtrace view' : 'the file to mail', () => {
    let browser: Browser;
    let folder: string;
    beforeAll(async () => {
      browser = await launch();
      folder = mkdtempSync(path.join(tmpdir(), 'gmt-doors-'));
      writeCases(folder);
    });
    afterAll(async () => {
      await browser.close();
      rmSync(folder, { recursive: true });
    });

    /** Opens recordings through the door, hands them to `use`, and closes it. */
    async function through(names: readonly string[], use: (test: TestPage) => Promise<void>): Promise<void> {
      const files = names.map((name) => `${name}.jsonl`);
      const door = verb === 'view' ? await Door.open(folder, ...files) : null;
      let url = door?.url ?? '';
      if (door === null) {
        const out = `${names.join('_')}.html`;
        run(folder, 'export', '--format', 'html', ...files, '-o', out, '--force');
        url = pathToFileURL(path.join(folder, out)).href;
      }
      const test = await TestPage.open(browser, { url });
      try {
        await untilReady(test);
        await use(test);
        expect(test.errors).toEqual([]);
        expect(test.strayRequests).toEqual([]);
      } finally {
        await test.close();
        await door?.close();
      }
    }

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

    it('agrees with itself: table, flame graph and the lane hold the same at the peak', async () => {
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

    it('leads from a leak to its blocks', async () => {
      await through(['leak'], async (test) => {
        await test.show('Leaks');
        await test.page.getByRole('region', { name: 'Suspects' }).getByRole('button').first().click();
        await test.idle();
        const { view, filter, selection } = await test.state();
        expect(view).toBe('timeline');
        expect(filter.stack).toBe(25);
        expect(selection).toEqual({ kind: 'stack', stack: 25 });
      });
    });

    it('compares two recordings', async () => {
      await through(['base', 'changed'], async (test) => {
        await test.show('Compare');
        expect(await test.page.locator('.answer h2').textContent()).toMatch(/\+1\.09 GiB/);
        expect(await test.snapshot()).toMatch(/Ema\.__init__/);
      });
    });
  });
}
