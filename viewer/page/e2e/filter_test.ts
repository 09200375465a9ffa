// Tests that the page refuses the texts of a filter that the server would refuse, and says so below
// their field, instead of sending them.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launch, noBrowser, recordedUrl, TestPage } from './page';
import { noPage, ViewProgram, writeCases } from './program';

const TEXTS = [
  'forward', '(', '/', '/(/', '/)/', '/[/', '/a[/', '/[a-c]/', '/[b-a]/', '/a{2,1}/', '/a**/', '/a*?/', '/(|a)*/', '/a||b/', '/(?i)a/', '/(?i:a)/',
  '/(?:)a/', '/(?=a)/', '/(?!a)/', '/(?<=a)b/', '/(?>a)/', '/(?#a)/', '/(a)\\1/', '/\\x41/', '/\\u0041/', '/\\cA/', '/\\d\\w\\s\\b/', '/\\(\\?=/', '/a\\/', '/a\\b/', '/ä+/',
  `/${'a'.repeat(998)}/`, `/${'a'.repeat(999)}/`,
];

describe.skipIf(noBrowser !== '')('an invalid filter', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it('is explained below its field in the colour of warnings', async () => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline` });
    await test.untilReady();
    const field = test.page.locator('#filter-text');
    await field.fill('/(/');
    await test.idle();
    const error = test.page.getByRole('alert');
    expect(await error.textContent()).toBe('Not a regular expression: unterminated group.');
    const [above, below] = [(await field.boundingBox())!, (await error.boundingBox())!];
    expect(below.y).toBeGreaterThanOrEqual(above.y + above.height);
    expect(below.y - above.y - above.height).toBeLessThan(20);
    expect(below.x).toBe(above.x);
    const [color, warning] = await error.evaluate((element) => {
      const probe = document.body.appendChild(document.createElement('i'));
      probe.style.color = 'var(--warn)';
      return [getComputedStyle(element).color, getComputedStyle(probe).color];
    });
    expect(color).toBe(warning);
    await field.fill('/a/');
    expect(await error.count()).toBe(0);
    await test.close();
  });

  const reason = noPage('view');
  if (reason !== '') console.log(reason);
  it.skipIf(reason !== '')('is one that the server refuses, and is not sent', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'gmt-filter-'));
    writeCases(folder);
    const program = await ViewProgram.open(folder, 'leak.jsonl');
    const test = await TestPage.open(browser, { url: `${program.url}#v=1&view=table` });
    await test.untilReady();
    const refused: string[] = [];
    test.page.on('response', (response) => {
      if (response.status() === 400) refused.push(response.url());
    });
    const different: string[] = [];
    for (const text of TEXTS) {
      const answer = await fetch(new URL(`api/find?file=0&lane=0&of=live&from=0&to=1&after=4294967295&limit=1&text=${encodeURIComponent(text)}`, program.url));
      await test.page.locator('#filter-text').fill(text);
      await test.idle();
      const errors = await test.page.locator('#filter-error').allTextContents();
      if (errors.length !== (answer.status === 400 ? 1 : 0)) different.push(`${text}: ${answer.status} ${errors.join('')}`);
    }
    expect(different).toEqual([]);
    expect(refused).toEqual([]);
    await test.close();
    await program.close();
    rmSync(folder, { recursive: true });
  });
});
