// Tests the overview over recordings whose answers are known: one that ran out of memory, one with
// a leak, one with nothing wrong. Through both transports.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { luminance } from '../src/render/palette';
import { formatBytes, formatCount, formatExactBytes } from '../src/base/format_bytes';
import { hexOf } from '../src/render/theme';
import { launch, noBrowser, TestPage } from './page';
import { noPage, run, writeCases } from './program';
import { through, type Transport } from './through';

const CONTRAST_OF_TEXT = 4.5; // WCAG 2, AA

function firstLine(folder: string, verb: string, recording: string): string {
  return run(folder, verb, `${recording}.jsonl`).split('\n')[0]!;
}

/** Returns what the tabs carry, by their titles. */
async function badges(test: TestPage): Promise<Record<string, string>> {
  const pairs = await test.page.locator('nav a').evaluateAll((tabs) =>
    tabs.flatMap((tab) => {
      const badge = tab.querySelector('.badge');
      return badge === null ? [] : [[tab.firstChild?.textContent ?? '', badge.textContent]];
    }),
  );
  return Object.fromEntries(pairs) as Record<string, string>;
}

const headings = (test: TestPage): Promise<string[]> => test.page.getByRole('region', { name: 'Verdict' }).getByRole('heading').allTextContents();

for (const transport of ['view', 'export'] satisfies Transport[]) {
  const reason = noBrowser === '' ? noPage(transport) : noBrowser;
  if (reason !== '') console.log(reason);
  describe.skipIf(reason !== '')(transport === 'view' ? 'the overview of gpumemtrace view' : 'the overview of the exported file', () => {
    let browser: Browser;
    let folder: string;
    beforeAll(async () => {
      browser = await launch();
      folder = mkdtempSync(path.join(tmpdir(), 'gmt-overview-'));
      writeCases(folder);
    });
    afterAll(async () => {
      await browser.close();
      rmSync(folder, { recursive: true });
    });
    const open = (name: string, use: (test: TestPage) => Promise<void>, address = ''): Promise<void> =>
      through(transport, browser, folder, [name], use, address);

    it('of a recording that ran out of memory begins with the verdict, and leads to its moment', async () => {
      await open('fragmentation', async (test) => {
        expect((await test.state()).view).toBe('overview');
        expect((await headings(test))[0]).toBe(firstLine(folder, 'oom', 'fragmentation'));
        expect(await badges(test)).toMatchObject({ 'Out of memory': '1' });
        expect(await test.page.title()).toBe('fragmentation.jsonl · Overview · gpumemtrace');
        await test.page.getByRole('link', { name: 'Show the moment on the timeline' }).first().click();
        await test.idle();
        const { view, cursor, meta } = await test.state();
        expect([view, cursor]).toEqual(['timeline', meta!.files[0]!.ooms[0]!.event]);
        await test.page.goBack();
        await test.idle();
        expect((await test.state()).view).toBe('overview');
        await test.page.getByRole('link', { name: 'Why: Out of memory' }).click();
        await test.idle();
        expect(await test.page.locator('.answer h2').textContent()).toBe(firstLine(folder, 'oom', 'fragmentation'));
      });
    });

    it('of a recording with a leak leads to its blocks in the last steps, named by their line', async () => {
      await open('leak', async (test) => {
        expect((await headings(test)).slice(0, 2)).toEqual([firstLine(folder, 'oom', 'leak'), firstLine(folder, 'leaks', 'leak')]);
        expect(await badges(test)).toMatchObject({ 'Out of memory': '1', Leaks: '1' });
        // From the failure too, only the last steps are shown.
        await test.page.getByRole('link', { name: 'Show the moment on the timeline' }).first().click();
        await test.idle();
        const failed = await test.state();
        expect(failed.range.from).toBeGreaterThan(failed.meta!.files[0]!.steps.begin.at(-5)!);
        await test.page.goBack();
        await test.idle();
        const leak = test.page.locator('.problem').filter({ hasText: 'Leak: ' });
        expect(await leak.textContent()).toContain('Fix: find what keeps it');
        const link = leak.getByRole('link', { name: 'Show the moment on the timeline' });
        const href = (await link.getAttribute('href'))!;
        await link.click();
        await test.idle();
        const here = await test.state();
        expect(here).toMatchObject({ view: 'timeline', colorBy: 'stack', filter: { stack: 25 }, selection: { kind: 'stack', stack: 25 } });
        const { steps, events } = here.meta!.files[0]!;
        expect(here.range.to).toBe(events + 1);
        expect(here.range.from).toBeGreaterThan(steps.begin.at(-13)!);
        expect(await test.page.getByRole('button', { name: 'Remove the filter train.py:37' }).isVisible()).toBe(true);
        // In a tab of its own the address shows the same.
        const other = await TestPage.open(browser, { url: test.page.url().replace(/#.*/, '') + href });
        await other.untilReady();
        const there = await other.state();
        for (const key of ['view', 'lane', 'cursor', 'filter', 'selection', 'colorBy', 'range'] as const) expect(there[key], key).toEqual(here[key]);
        await other.close();
      });
    });

    it('of a recording that is too short to be certain says that nothing was found', async () => {
      await open('short', async (test) => {
        expect(await headings(test)).toEqual([expect.stringMatching(/^Nothing wrong was found[.:]/)]);
        expect((await badges(test)).Leaks).toBe('?');
      });
    });

    it('of a recording with nothing wrong says so, how much room there was, and what was checked', async () => {
      await open('clean', async (test) => {
        expect(await headings(test)).toEqual(['Nothing is wrong: 69.7 GiB of headroom on GPU 0.']);
        expect(await test.page.locator('.problem').textContent()).toContain('80.0 GiB minus the most in use according to the driver, 10.3 GiB.');
        expect(await badges(test)).toEqual({ 'Out of memory': '✓', Leaks: '✓', Ledger: '✓', Fragmentation: '✓' });
        const checked = await test.page.getByRole('list', { name: 'Checked' }).getByRole('listitem').allTextContents();
        for (const verb of ['oom', 'leaks', 'ledger', 'frag']) expect(checked.join('\n')).toContain(firstLine(folder, verb, 'clean'));
      });
    });

    it('shows the parts of the peak, what a step adds, the phases and the run', async () => {
      await open('clean', async (test) => {
        const peak = test.page.getByRole('region', { name: /^Peak of GPU 0: 9\.52 GiB allocated/ });
        expect(await peak.getByRole('img').first().getAttribute('aria-label')).toMatch(
          /optimizer state 4\.00 GiB, activations 3\.02 GiB, parameters 2\.00 GiB, gradients 512 MiB, cache 256 MiB, reserved 9\.77 GiB, capacity 80\.0 GiB$/,
        );
        expect(await peak.textContent()).toMatch(/floor6\.00 GiB: optimizer state 4\.00 GiB, parameters 2\.00 GiBvariable3\.52 GiB: activations \+3\.02 GiB, gradients \+512 MiB/);
        expect(await peak.getByRole('row').allTextContents()).toEqual(expect.arrayContaining([expect.stringMatching(/^forward.*ms9\.27 GiB\+3\.02 GiB$/)]));
        const facts = await test.page.getByRole('region', { name: 'The run' }).textContent();
        for (const fact of ['Commandpython train.py', 'GPUNVIDIA H100 80GB HBM3, 80.0 GiB', 'Versionstorch 2.11.0, python 3.11.2', 'complete', '229 steps']) expect(facts).toContain(fact);
        await peak.getByRole('link', { name: 'activations' }).click();
        await test.idle();
        expect(await test.state()).toMatchObject({ view: 'timeline', filter: { category: 'activations' } });
      });
    });

    it('lists the allocators with the numbers of report --json', async () => {
      interface Use { readonly name: string; readonly live_bytes: number; readonly live_count: number; readonly peak_bytes: number }
      interface Report { readonly devices: readonly { readonly allocators: readonly Use[]; readonly room: Readonly<Record<string, number>> }[] }
      const { allocators, room } = (JSON.parse(run(folder, 'report', '--json', 'outside.jsonl')) as Report).devices[0]!;
      expect(allocators.map(({ name }) => name)).toEqual(['cudaMalloc', 'caching allocator (pytorch)']);
      await open('outside', async (test) => {
        const table = test.page.getByRole('region', { name: 'Allocators of GPU 0' });
        const rows = await table.locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => [cell.textContent, cell.firstElementChild!.getAttribute('title')] as const)));
        expect(rows.map(([name, live, count, peak]) => [name![0], live![1], count![0], peak![1]])).toEqual(
          allocators.map((use) => [use.name, formatExactBytes(use.live_bytes), formatCount(use.live_count), formatExactBytes(use.peak_bytes)]),
        );
        expect(rows.map(([, live]) => live![0])).toEqual(allocators.map((use) => formatBytes(use.live_bytes)));
        expect(await table.locator('.muted').textContent()).toBe(
          `At this peak about ${formatBytes(room['free_bytes']!)} were free of ${formatBytes(room['total_bytes']!)}; a request of up to ${formatBytes(room['largest_request_bytes']!)} would have succeeded.`,
        );
      });
    });

    it.each([['#v=1&view=table', 'table'], ['#v=1&at=5', 'timeline'], ['#v=1', 'overview'], ['', 'overview']])('opens unless the address requests another view: %s', async (address, view) => {
      await open('short', async (test) => {
        expect((await test.state()).view).toBe(view);
        // Tabs have their badges in every view.
        expect(await badges(test)).toMatchObject({ 'Out of memory': '✓', Leaks: '?' });
      }, address);
    });

    it.each([
      ['leak', 'Leaks', /^Held on GPU 0 at the minimum of each step/, /\+?48\.0 MiB per step/],
      ['clean', 'Ledger', /the parts of what is in use: live blocks 9\.52 GiB/, /= this process.*= in use/],
      ['clean', 'Fragmentation', /^Reserved and free on GPU 0, by cause/, /in segments without live blocks/],
      ['fragmentation', 'Out of memory', /^Where the memory was: live blocks/, /expandable_segments:True/],
    ] as const)('%s: %s has a chart with a description', async (recording, title, name, words) => {
      await open(recording, async (test) => {
        await test.show(title);
        expect(await test.page.getByRole('img', { name }).count()).toBe(1);
        expect(await test.page.locator('.answer').textContent()).toMatch(words);
      });
    });

    it.each(['light', 'dark'] as const)('has enough contrast on a %s page, and headings in order', async (scheme) => {
      await open('leak', async (test) => {
        await test.page.emulateMedia({ colorScheme: scheme });
        const pairs = await test.page.locator('.badge.bad, .badge.calm, .problem h2, .mood, .overview a, .overview dt, .overview .muted').evaluateAll((elements) =>
          elements.map((element) => {
            let behind: Element | null = element;
            while (behind !== null && getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
            return [element.textContent, getComputedStyle(element).color, behind === null ? 'rgb(255, 255, 255)' : getComputedStyle(behind).backgroundColor] as const;
          }),
        );
        expect(pairs.length).toBeGreaterThan(10);
        for (const [name, text, ground] of pairs) {
          const [a, b] = [luminance(hexOf(text)), luminance(hexOf(ground))];
          expect((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), `${name} ${text} on ${ground}`).toBeGreaterThanOrEqual(CONTRAST_OF_TEXT);
        }
        const levels = await test.page.getByRole('main').getByRole('heading').evaluateAll((all) => all.map((heading) => Number(heading.tagName.slice(1))));
        for (const [i, level] of levels.entries()) expect(level - (levels[i - 1] ?? 1)).toBeLessThanOrEqual(1);
      });
    });
  });
}
