// Tests what `gpumemtrace view` shows if there is little to show: a file that cannot be read, a
// recording without memory, one too short for an answer.

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VIEWS } from '../src/app/views';
import type { Meta } from '../src/data/protocol';
import { launch, noBrowser, TestPage, visit } from './page';
import { ViewProgram, errorOf, noPage, run, writeCases } from './program';

const FIRST = 24; // bytes of the recording that are kept
const reason = noBrowser === '' ? noPage('view') : noBrowser;
if (reason !== '') console.log(reason);

describe.skipIf(reason !== '')('designed states', () => {
  let browser: Browser;
  let folder: string;
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-states-'));
    writeCases(folder);
    for (const name of ['fine.gmt', 'damaged.gmt']) run(folder, 'import', 'short.jsonl', '-o', name);
    damage(path.join(folder, 'damaged.gmt'));
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  async function through(files: readonly string[], use: (test: TestPage) => Promise<void>): Promise<void> {
    const view = await ViewProgram.open(folder, ...files);
    try {
      await visit(browser, view.url, use);
    } finally {
      await view.close();
    }
  }

  it.each([['damaged.gmt', 'fine.gmt'], ['fine.gmt', 'damaged.gmt']])('a damaged file shows the error of the program, and leaves the other file alone: %s, %s', async (...files) => {
    const sentence = errorOf(folder, 'report', 'damaged.gmt');
    expect(sentence).toMatch(/damaged\.gmt/);
    await through(files, async (test) => {
      const recording = test.page.getByLabel('Recording', { exact: true });
      const choose = async (name: string): Promise<void> => {
        await recording.selectOption({ label: name });
        await test.idle();
      };
      expect(await test.page.getByRole('alert').allTextContents()).toEqual(files[0] === 'damaged.gmt' ? [sentence] : []);
      for (let round = 0; round < 2; ++round) {
        await choose('damaged.gmt');
        expect(await test.page.getByRole('alert').textContent()).toBe(sentence);
        expect(await test.page.locator('.plot').count()).toBe(0);
        expect(await test.page.getByRole('search', { name: 'Filter' }).count()).toBe(0); // there is nothing to filter
        await choose('fine.gmt');
        expect(await test.page.getByRole('alert').count()).toBe(0);
        await test.show('Table');
        expect(await test.page.getByRole('row').count()).toBeGreaterThan(2);
        await test.show('Timeline');
        expect(await test.page.locator('.readout').textContent()).toMatch(/[1-9]\d* blocks drawn/);
      }
    });
  });

  it('while a file is read: its progress, and curves of the part that has been read', async () => {
    const view = await ViewProgram.open(folder, 'fine.gmt');
    const test = await TestPage.open(browser, { url: view.url });
    try {
      // The page of a program that has read this far.
      const so_far = { share: 0.25, lanes: [{ label: 'GPU 0 · PyTorch blocks', bytes: 2 ** 30, most: [0, 2 ** 31, 2 ** 30] }] };
      const progress = { file: 0, state: 'loading', what: 'reading events: 1,000', fraction: 0.125, error: '', so_far };
      await test.page.route('**/api/meta', async (route) => {
        const response = await route.fetch();
        const meta = (await response.json()) as Meta;
        await route.fulfill({ json: { ...meta, files: meta.files.map((file) => ({ ...file, lanes: [] })) } });
      });
      await test.page.route('**/api/alive', (route) =>
        route.fulfill({ contentType: 'text/event-stream', body: `data: ${JSON.stringify({ files: [progress] })}\n\n` }));
      await test.page.reload();
      const lane = test.page.getByRole('list', { name: 'Memory in the part read so far' }).getByRole('listitem');
      await lane.waitFor();
      expect(await lane.allTextContents()).toEqual(['GPU 0 · PyTorch blocks 1.00 GiB, peak 2.00 GiB so far']);
      expect(await lane.locator('path').getAttribute('d')).toBe('M0 100V100H83.3V1H166.7V50.5H250V100Z');
      expect(await test.page.getByRole('status').first().textContent()).toBe('reading events: 1,000');
      expect(await test.page.getByRole('progressbar').getAttribute('value')).toBe('0.125');
    } finally {
      await test.close();
      await view.close();
    }
  });

  it('a recording without memory says so in every view, and that it is complete', async () => {
    await through(['empty.jsonl'], async (test) => {
      for (const { title } of Object.values(VIEWS)) {
        await test.show(title);
        const main = test.page.getByRole('main');
        expect(await main.getByRole('heading').textContent(), title).toBe('No memory was allocated in this recording.');
        expect(await main.textContent(), title).toContain('The process allocated no GPU or pinned host memory while it was recorded.');
        expect(await test.page.locator('[role=alert], progress').count(), title).toBe(0);
      }
      await test.press('?');
      expect(await test.page.getByRole('dialog').count()).toBe(1);
    });
  });

  it('too few steps for leaks: shows how many there are and how many are needed, and no table of suspects', async () => {
    await through(['short.jsonl'], async (test) => {
      await test.show('Leaks');
      const answer = test.page.locator('.answer.unsure');
      expect(await answer.getByRole('heading', { level: 2 }).textContent()).toBe(run(folder, 'leaks', 'short.jsonl').split('\n')[0]);
      const meter = answer.getByRole('meter', { name: 'steps seen' });
      // Twelve marks enclose eleven steps.
      expect([await meter.getAttribute('value'), await meter.getAttribute('max')]).toEqual(['11', '100']);
      expect(await answer.locator('.how-far').textContent()).toContain('11 of 100 steps that an answer needs');
      expect(await test.page.getByRole('region', { name: 'Suspects' }).count()).toBe(0);
      expect(await answer.locator('pre').textContent()).toBe(run(folder, 'leaks', 'short.jsonl'));
      // Other answers are available.
      await test.show('Out of memory');
      expect(await test.page.locator('.answer.calm').count()).toBe(1);
      await test.show('Ledger');
      expect(await test.page.locator('.answer.calm').count()).toBe(1);
    });
  });
});

/** Keeps the beginning of a recording and makes the rest unreadable. */
function damage(file: string): void {
  const size = readFileSync(file).length;
  const to = openSync(file, 'r+');
  writeSync(to, Buffer.alloc(size - FIRST), 0, undefined, FIRST);
  closeSync(to);
}
