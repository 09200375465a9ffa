// Tests what the page asks while the server is still loading a recording. The server's stages are
// played to it, because a recording that takes long to load would take long to make.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HANG_MS } from './live';
import { launch, noBrowser } from './page';
import { noPage, ViewProgram, writeCases } from './program';
import { ready } from './two_transports';

const reason = noBrowser !== '' ? noBrowser : noPage('view');
if (reason !== '') console.log(reason);

describe.skipIf(reason !== '')('a recording that is being loaded', () => {
  let browser: Browser;
  let folder: string;
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-loading-'));
    writeCases(folder);
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['table', 'table', 'row'],
    ['flame', 'flame', 'tree'],
    ['segments', 'segments', 'tree'],
  ] as const)('%s: what was refused is asked again when it can be answered', async (view, question, role) => {
    const program = await ViewProgram.open(folder, 'leak.jsonl');
    await ready(program.url); // it answers all that is not refused below
    const page = await browser.newPage();
    page.setDefaultTimeout(HANG_MS);
    let stage = 'coarse';
    await page.route('**/api/alive', async (route) => {
      const progress = { files: [{ file: 0, state: stage, what: 'reading events', fraction: 0.5, error: '' }] };
      await route.fulfill({ contentType: 'text/event-stream', body: `retry: 50\ndata: ${JSON.stringify(progress)}\n\n` });
    });
    await page.route(`**/api/${question}?*`, async (route) => {
      if (stage === 'ready') await route.continue();
      else await route.fulfill({ status: 503, json: { error: 'leak.jsonl is being loaded: reading events' } });
    });
    await page.goto(`${program.url}#v=1&view=${view}`);
    await page.locator('main').getByText('leak.jsonl is being loaded').first().waitFor();
    stage = 'ready';
    await page.locator('main').getByRole(role).first().waitFor();
    expect(await page.locator('main').getByText('is being loaded').count()).toBe(0);
    await page.close();
    await program.close();
  });
});
