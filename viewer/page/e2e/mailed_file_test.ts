// A mailed file in a browser that has no network, opened as a file.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../src/base/random';
import { launch, noBrowser, TestPage } from './page';
import { writeRandomLog } from './random_log';
import { noProgram, run } from './two_doors';

describe.skipIf(noBrowser !== '' || noProgram !== '')('a mailed file', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-mailed-'));
  const log = path.join(folder, 'run.jsonl');
  const html = path.join(folder, 'run.html');
  let browser: Browser;

  beforeAll(async () => {
    writeRandomLog(log, new Random(3), 8000);
    run('export', '--format', 'html', log, '-o', html);
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  it('shows every view without asking anyone for anything', async () => {
    const test = await TestPage.open(browser, { url: pathToFileURL(html).href });
    const views = await test.page.getByRole('navigation').getByRole('link').allTextContents();
    expect(views.length).toBeGreaterThan(0);
    for (const view of views) {
      await test.show(view);
      expect(await test.snapshot()).not.toContain('damaged');
    }
    expect(test.strayRequests).toEqual([]);
    expect(test.errors).toEqual([]);
    expect((await test.state()).meta!.door).toBe('file');
    await test.close();
  });

  it('says in its title which run it shows and keeps no data in the page', async () => {
    const test = await TestPage.open(browser, { url: pathToFileURL(html).href });
    expect(await test.page.title()).toContain('run.jsonl');
    expect(await test.page.locator('script[data-gmt]').count()).toBe(0);
    await test.close();
  });

  it('may not ask for anything, even if its script tried to', async () => {
    const test = await TestPage.open(browser, { url: pathToFileURL(html).href });
    const asked = await test.page.evaluate(() => fetch('https://example.org/').then(() => 'answered', () => 'refused'));
    expect(asked).toBe('refused');
    expect(test.errors.join()).toContain('Content Security Policy');
    await test.close();
  });

  it('that is smaller than its data says what it left out', async () => {
    const small = path.join(folder, 'small.html');
    run('export', '--format', 'html', log, '-o', small, '--max-mb', '0.215');
    expect(readFileSync(small).length).toBeLessThanOrEqual(215_000);
    const test = await TestPage.open(browser, { url: pathToFileURL(small).href });
    const { omitted } = (await test.state()).meta!.files[0]!;
    expect(omitted!.blocks).toBeGreaterThan(0);
    expect(test.errors).toEqual([]);
    await test.close();
  });

  it('that was cut off says so', async () => {
    const cut = path.join(folder, 'cut.html');
    const text = readFileSync(html, 'utf8');
    const at = text.indexOf('data-gmt="0/stacks">') + 60;
    const { writeFileSync } = await import('node:fs');
    writeFileSync(cut, `${text.slice(0, at)}${text.slice(text.indexOf('</script>', at))}`);
    const test = await TestPage.open(browser, { url: pathToFileURL(cut).href });
    expect(await test.page.locator('body').innerText()).toContain('damaged');
    await test.close();
  });
});
