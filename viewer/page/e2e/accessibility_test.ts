// Tests every view for accessibility with axe-core, in both themes: the standalone file with two
// recordings, and recordings with each verdict.

import { readFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VIEWS } from '../src/app/views';
import { launch, noBrowser, recordedUrl, TestPage } from './page';
import { noPage, writeCases } from './program';
import { through } from './through';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// A table has the focus itself, and its keys scroll its body.
const SCROLLED_BY_ITS_TABLE = ['scrollable-region-focusable', '<div class="grid-body"'] as const;

/** Returns a text for each violation: the rule, what is wrong, and the elements. */
async function violations(test: TestPage): Promise<string[]> {
  await test.page.evaluate(AXE);
  const results = await test.page.evaluate(() => (window as unknown as { axe: { run(): Promise<AxeResults> } }).axe.run());
  const [rule, element] = SCROLLED_BY_ITS_TABLE;
  const wrong = results.violations
    .map(({ id, help, nodes }) => ({ id, help, nodes: nodes.filter(({ html }) => id !== rule || !html.startsWith(element)) }))
    .filter(({ nodes }) => nodes.length > 0);
  return wrong.map(({ id, help, nodes }) => `${id}: ${help}\n${nodes.map(({ html, failureSummary }) => `  ${html.slice(0, 200)}\n  ${failureSummary}`).join('\n')}`);
}

describe.skipIf(noBrowser !== '')('accessibility', () => {
  let browser: Browser;
  let folder: string;
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-accessibility-'));
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  it.each(['light', 'dark'] as const)('every view passes in the %s theme', async (colorScheme) => {
    const test = await TestPage.open(browser, { url: recordedUrl(), colorScheme });
    const found: Record<string, string[]> = {};
    for (const { title } of Object.values(VIEWS)) {
      await test.show(title);
      const here = await violations(test);
      if (here.length > 0) found[title] = here;
    }
    expect(found).toEqual({});
    await test.close();
  });

  it.skipIf(noPage('view') !== '')('verdicts, and what opens over a view, pass', async () => {
    writeCases(folder);
    for (const recording of ['fragmentation', 'leak']) {
      await through('view', browser, folder, [recording], async (test) => {
        expect(await violations(test)).toEqual([]);
        for (const key of ['?', 'Control+k']) {
          await test.press(key);
          expect(await violations(test)).toEqual([]);
          await test.press('Escape');
        }
      });
    }
    await through('view', browser, folder, ['leak', 'empty', 'observed'], async (test) => {
      await test.press('Shift+KeyL');
      await test.page.getByText('Lanes: 3 of 5').click();
      await test.page.getByRole('group', { name: 'leak.jsonl' }).getByRole('checkbox').last().check();
      await test.page.getByRole('button', { name: /^Pin leak/ }).first().click();
      await test.page.getByText('Lanes: 4 of 5').click();
      expect(await violations(test)).toEqual([]);
    });
  });
});
