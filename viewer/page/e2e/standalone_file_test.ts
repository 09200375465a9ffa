// A standalone file in a browser without a network, opened as a file.

import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../src/testing/random';
import { VIEWS } from '../src/app/views';
import { launch, noBrowser, recordedUrl, TestPage } from './page';
import { errorOf, noPage, run } from './program';
import { writeRandomLog } from './random_log';

/** Returns the size that, as the program reports, a page needs without a single block. */
function minMegabytes(folder: string): number {
  const said = errorOf(folder, 'export', '--format', 'html', 'run.jsonl', '-o', 'small.html', '--max-mb', '0.01');
  return Number(/the page needs (\d+\.\d\d) MB/.exec(said)![1]);
}

describe.skipIf(noBrowser !== '' || noPage('export') !== '')('a standalone file', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-standalone-'));
  const log = path.join(folder, 'run.jsonl');
  const html = path.join(folder, 'run.html');
  let browser: Browser;

  beforeAll(async () => {
    writeRandomLog(log, new Random(3), 8000);
    run(folder, 'export', '--format', 'html', 'run.jsonl', '-o', 'run.html');
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  it('shows every view without requesting anything', async () => {
    const test = await TestPage.open(browser, { url: pathToFileURL(html).href });
    for (const { title } of Object.values(VIEWS)) {
      await test.show(title);
      expect(await test.snapshot()).not.toContain('damaged');
    }
    expect(test.strayRequests).toEqual([]);
    expect(test.errors).toEqual([]);
    expect((await test.state()).meta!.origin).toBe('file');
    await test.close();
  });

  it('decodes its data in a worker, so that frames continue', async () => {
    const test = await TestPage.open(browser, { url: pathToFileURL(html).href });
    expect(test.page.workers().map((worker) => worker.url())).toEqual([expect.stringMatching(/^blob:/)]);
    await test.close();
  });

  it('names its recording in the title and keeps no data in the page', async () => {
    const test = await TestPage.open(browser, { url: pathToFileURL(html).href });
    expect(await test.page.title()).toContain('run.jsonl');
    expect(await test.page.locator('script[data-gmt]').count()).toBe(0);
    await test.close();
  });

  it('cannot request anything, even if its script tries to', async () => {
    const test = await TestPage.open(browser, { url: pathToFileURL(html).href });
    const asked = await test.page.evaluate(() => fetch('https://example.org/').then(() => 'answered', () => 'refused'));
    expect(asked).toBe('refused');
    expect(test.errors.splice(0).join()).toContain('Content Security Policy');
    await test.close();
  });

  it('that is smaller than its data knows what it left out', async () => {
    const small = path.join(folder, 'small.html');
    const needed = minMegabytes(folder);
    const whole = statSync(html).size / 1e6;
    const allowed = (needed + whole) / 2;
    run(folder, 'export', '--format', 'html', 'run.jsonl', '-o', 'small.html', '--max-mb', String(allowed));
    expect(statSync(small).size).toBeLessThanOrEqual(allowed * 1e6);
    const test = await TestPage.open(browser, { url: pathToFileURL(small).href });
    const { omitted } = (await test.state()).meta!.files[0]!;
    expect(omitted!.blocks).toBeGreaterThan(0);
    expect(test.errors).toEqual([]);
    await test.close();
  });

  it('is a single file', () => {
    const own = mkdtempSync(path.join(folder, 'alone-'));
    copyFileSync(log, path.join(own, 'run.jsonl'));
    run(own, 'export', '--format', 'html', 'run.jsonl', '-o', 'run.html');
    expect(readdirSync(own).sort()).toEqual(['run.html', 'run.jsonl']);
  });

  it('that is truncated says so', async () => {
    const cut = path.join(folder, 'cut.html');
    const text = readFileSync(html, 'utf8');
    const at = text.indexOf('data-gmt="0/stacks">') + 60;
    writeFileSync(cut, `${text.slice(0, at)}${text.slice(text.indexOf('</script>', at))}`);
    const test = await TestPage.open(browser, { url: `${pathToFileURL(cut).href}#v=1&view=timeline` });
    expect(await test.page.locator('body').innerText()).toContain('damaged');
    await test.close();
  });
});

// As the Python package shows it in notebooks (python/gpumemtrace/notebook.py).
describe.skipIf(noBrowser !== '')('a standalone file in a sandbox of another page', () => {
  it('shows every view, although it has neither an address nor storage', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'gmt-sandbox-'));
    const outer = path.join(folder, 'outer.html');
    const inner = readFileSync(fileURLToPath(recordedUrl()), 'utf8').replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    writeFileSync(outer, `<!doctype html><iframe sandbox="allow-scripts" width="1200" height="700" srcdoc="${inner}"></iframe>`);
    const browser = await launch();
    const page = await browser.newPage();
    page.setDefaultTimeout(120_000); // guards against hanging
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => { if (message.type() === 'error') errors.push(message.text()); });
    await page.goto(pathToFileURL(outer).href);
    const views = page.frameLocator('iframe').getByRole('navigation');
    for (const { title } of Object.values(VIEWS)) {
      await views.getByRole('link', { name: title, exact: true }).click();
      await views.locator('[aria-current=page]', { hasText: title }).waitFor();
      await page.waitForTimeout(500); // longer than the page waits until it writes its address
    }
    expect(errors).toEqual([]);
    await browser.close();
    rmSync(folder, { recursive: true });
  });
});
