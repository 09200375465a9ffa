// Tests the heat map of ranks: it says what `gpumemtrace ranks` prints, each cell has the peak that
// the rank had in these steps, and a click opens the rank there. Many ranks are shown by their
// digests, and loaded when they are opened.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Ranks } from '../src/data/protocol';
import { HEADING, layOut, type Spot } from '../src/views/ranks/heat_map';
import { launch, noBrowser, TestPage, visit } from './page';
import { noPage, run, ViewProgram } from './program';

const MIB = 2 ** 20;
const STEPS = 6;
const LOADED_AT_START = 32; // ViewOptions
const MANY = 40;
const DIFFERENT = 2; // this rank holds more from step 4 on
const MORE_MIB = 128;

const reason = [noBrowser, noPage('view')].find((why) => why !== '') ?? '';
if (reason !== '') console.log(reason);

/** The bytes in MiB that a rank allocates in a step beside the 256 MiB that it keeps. */
function mibIn(rank: number, step: number): number {
  return 64 + (rank === DIFFERENT && step >= 4 ? MORE_MIB : 0);
}

function writeRank(file: string, rank: number): void {
  const lines: object[] = [
    { kind: 'header', schema: 'gpumemtrace.events/1', rank, world_size: MANY, hostname: 'node', pid: 100 + rank },
    { kind: 'stack', id: 1, frames: [{ function: 'train', file: 'train.py', line: 20, language: 'python' }] },
  ];
  let now = 0;
  const event = (kind: string, address: number, size: number): void => {
    lines.push({ kind, t_ns: (now += 1_000_000), heap: 'driver', memory: 'device', device: 0, address: 2 ** 32 + address, size, stack: 1, api: 'cudaMalloc' });
  };
  const mark = (index: number): void => void lines.push({ kind: 'mark', t_ns: (now += 1_000_000), name: 'step', index });
  event('alloc', 0, 256 * MIB);
  mark(0);
  for (let step = 1; step <= STEPS; ++step) {
    event('alloc', 2 ** 30, mibIn(rank, step) * MIB);
    event('free', 2 ** 30, mibIn(rank, step) * MIB);
    mark(step);
  }
  writeFileSync(file, lines.map((line) => JSON.stringify(line)).join('\n'));
}

describe.skipIf(reason !== '')('ranks', () => {
  let browser: Browser;
  let folder: string;
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-ranks-'));
    mkdirSync(path.join(folder, 'out'));
    for (let rank = 0; rank < MANY; ++rank) {
      const name = String(rank).padStart(2, '0');
      writeRank(path.join(folder, `r${name}.jsonl`), rank);
      run(folder, 'import', `r${name}.jsonl`, '-o', `out/r${name}.gmt`);
    }
    run(folder, 'ranks', '--digest-only', 'out');
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  const FEW = [0, 1, 2, 3].map((rank) => `r0${rank}.jsonl`);

  async function over(files: readonly string[], use: (test: TestPage) => Promise<void>, colorScheme: 'light' | 'dark' = 'light'): Promise<void> {
    const view = await ViewProgram.open(folder, ...files);
    const test = await TestPage.open(browser, { url: `${view.url}#v=1&view=ranks`, colorScheme });
    try {
      await test.page.locator('.heat-map').waitFor();
      await test.page.waitForFunction((count) => document.querySelector('.heat-map')?.getAttribute('aria-label') === `Peaks of ${count} ranks by step`, files.length > 1 ? files.length : MANY);
      await test.idle();
      await use(test);
    } finally {
      await test.close();
      await view.close();
    }
  }

  it('says what the command prints, and shows the peak of each cell at the pointer', async () => {
    await over(FEW, async (test) => {
      const [headline] = run(folder, 'ranks', ...FEW).split('\n');
      expect(await test.page.locator('.ranks-verdict h2').textContent()).toBe(headline);
      expect(headline).toContain(`Rank ${DIFFERENT} has a peak of 448 MiB, 128 MiB more`);
      expect(await test.page.getByRole('list', { name: 'Ranks that differ' }).textContent()).toContain(`rank ${DIFFERENT}: `);
      for (const [row, step] of [[0, 1], [DIFFERENT, 3], [DIFFERENT, 4], [3, STEPS]] as const) {
        await point(test, { row, column: step });
        const mib = 256 + mibIn(row, step);
        expect(await moment(test)).toBe(`rank ${row}, step ${step}: ${mib} MiB, ${mib === 320 ? 'the median' : '+128 MiB (+40 %) from the median'}`);
      }
    });
  });

  it('are the first thing that the overview of one of them says', async () => {
    await over(FEW, async (test) => {
      await test.show('Overview');
      const headings = await test.page.locator('.verdict h2').allTextContents();
      const [headline] = run(folder, 'ranks', ...FEW).split('\n');
      expect(headings[0]).toBe(headline);
      expect(headings[1]).toMatch(/^Nothing .* in r00\.jsonl \(rank 0\)/);
      expect(await test.page.locator('.verdict .problem.bad').count()).toBe(1);
    });
  });

  it('a click opens the rank at its steps, and Back returns', async () => {
    await over(FEW, async (test) => {
      await point(test, { row: DIFFERENT, column: 5 });
      await test.page.mouse.down();
      await test.page.mouse.up();
      await test.idle();
      const { view, file, meta, range } = await test.state();
      expect([view, file]).toEqual(['timeline', DIFFERENT]);
      const { begin, end } = meta!.files[DIFFERENT]!.steps;
      expect(range.from).toBeLessThanOrEqual(begin[4]!);
      expect(range.to).toBeGreaterThanOrEqual(end[4]!);
      expect(range.to - range.from).toBeLessThan(2 * (end[4]! - begin[4]!) + 20);
      await test.page.goBack();
      await test.page.waitForFunction(() => location.hash.includes('view=ranks'));
      await test.idle();
      expect((await test.state()).file).toBe(0);
    });
  });

  it('keys reach every cell, and Enter opens its rank', async () => {
    await over(FEW, async (test) => {
      await test.page.getByRole('tree').focus();
      expect(await moment(test)).toContain(`rank ${DIFFERENT}, whole recording: 448 MiB`);
      await test.press('ArrowRight', 'ArrowDown');
      expect(await moment(test)).toBe('rank 3, step 1: 320 MiB, the median');
      expect(await test.page.locator('[role=treeitem][aria-selected=true]').textContent()).toBe('rank 3, step 1: 320 MiB, the median');
      await test.press('Home', 'Enter');
      expect(await test.state()).toMatchObject({ view: 'timeline', file: 0 });
    });
  });

  it.each(['light', 'dark'] as const)('in the %s theme cells above the median are orange', async (scheme) => {
    await over(FEW, async (test) => {
      const colors = await colorsOf(test, [{ row: 0, column: 5 }, { row: DIFFERENT, column: 2 }, { row: DIFFERENT, column: 5 }]);
      const redness = colors.map(([red, , blue]) => red! - blue!);
      expect(Math.abs(redness[0]!)).toBeLessThan(20);
      expect(Math.abs(redness[1]!)).toBeLessThan(20);
      expect(redness[2]).toBeGreaterThan(60);
      expect(colors[0]![0]! > 128).toBe(scheme === 'light');
    }, scheme);
  });

  it('a standalone file has the same ranks, and opens them', async () => {
    run(folder, 'export', '--format', 'html', ...FEW, '-o', 'ranks.html');
    await visit(browser, `${pathToFileURL(path.join(folder, 'ranks.html')).href}#v=1&view=ranks`, async (test) => {
      expect(await test.page.locator('.ranks-verdict h2').textContent()).toBe(run(folder, 'ranks', ...FEW).split('\n')[0]);
      await test.page.getByRole('tree').focus();
      expect(await moment(test)).toContain(`rank ${DIFFERENT}, whole recording: 448 MiB`);
      await test.press('ArrowRight', 'Enter');
      expect(await test.state()).toMatchObject({ view: 'timeline', file: DIFFERENT });
    });
  });

  it('many ranks are shown by their digests, and loaded when they are opened', async () => {
    await over(['out'], async (test) => {
      const { meta, progress } = await test.state();
      expect(meta!.files).toHaveLength(MANY);
      const waiting = progress!.files.filter(({ state }) => state === 'waiting').map(({ file }) => file);
      expect(waiting).toEqual(Array.from({ length: MANY - LOADED_AT_START }, (_, i) => LOADED_AT_START + i));
      expect(await test.page.locator('.ranks-verdict h2').textContent()).toBe(run(folder, 'ranks', 'out').split('\n')[0]);
      // A range of the rank that is shown means nothing for another one.
      await test.page.evaluate(() => (location.hash = '#v=1&view=ranks&axis=event&range=2_9'));
      await test.idle();
      await test.page.getByRole('tree').focus();
      await test.press('End', 'Enter');
      await test.page.waitForFunction((last) => window.gmtTest!.state().progress!.files[last]!.state === 'ready', MANY - 1);
      await test.idle();
      expect(await test.state()).toMatchObject({ view: 'timeline', file: MANY - 1 });
      expect((await test.state()).progress!.files[MANY - 2]!.state).toBe('waiting');
      const state = await test.state();
      expect(state.range).toEqual({ from: 0, to: state.meta!.files[MANY - 1]!.events + 1 });
      await test.page.goBack();
      await test.page.waitForFunction(() => location.hash.includes('view=ranks'));
      await test.idle();
      expect(await test.state()).toMatchObject({ view: 'ranks', file: 0, range: { from: 2, to: 9 } });
    });
  });

  it('one recording alone says how to compare ranks', async () => {
    const view = await ViewProgram.open(folder, FEW[0]!);
    await visit(browser, `${view.url}#v=1&view=ranks`, async (test) => {
      expect(await test.page.locator('main').textContent()).toContain('Only one recording is open');
      expect(await test.page.locator('main').textContent()).toContain('gpumemtrace view out/');
    });
    await view.close();
  });
});

function moment(test: TestPage): Promise<string | null> {
  return test.page.locator('.ranks-moment').textContent();
}

/** Returns the middle of a cell, relative to the canvas. */
async function middleOf(test: TestPage, { row, column }: Spot): Promise<{ readonly x: number; readonly y: number; readonly left: number; readonly top: number }> {
  const ranks = await test.page.evaluate(async () => (await (await fetch('api/ranks')).json()) as unknown);
  const box = (await test.page.locator('.heat-map canvas').boundingBox())!;
  const layout = layOut(ranks as Ranks, box.width, box.height);
  const { x, width } = layout.columns[column]!;
  return { x: x + width / 2, y: HEADING + (row + 0.5) * layout.rowHeight, left: box.x, top: box.y };
}

async function point(test: TestPage, spot: Spot): Promise<void> {
  const { x, y, left, top } = await middleOf(test, spot);
  await test.page.mouse.move(left + x, top + y);
  await test.idle();
}

/** Returns red, green, blue and opacity of each cell. */
async function colorsOf(test: TestPage, spots: readonly Spot[]): Promise<readonly (readonly number[])[]> {
  const places: { readonly x: number; readonly y: number }[] = [];
  for (const spot of spots) places.push(await middleOf(test, spot));
  return test.page.evaluate((at) => {
    const canvas = document.querySelector<HTMLCanvasElement>('.heat-map canvas')!;
    const { data, width } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
    return at.map(({ x, y }) => [...data.slice(4 * (Math.round(y) * width + Math.round(x)), 4 * (Math.round(y) * width + Math.round(x)) + 4)]);
  }, places);
}
