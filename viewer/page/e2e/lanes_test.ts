// Tests the view of several lanes over the ranks of a job that are recorded here: what it shows at
// a moment is what the ranks held by their own account, by `report` and by the server's curves.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatBytes } from '../src/base/format_bytes';
import { HttpSource } from '../src/data/http_source';
import type { LaneAlignment, State } from '../src/state/state';
import { Random } from '../src/testing/random';
import { GUTTER, MARGIN } from '../src/views/lanes/draw_lane';
import { laneAxis, type LaneAxis } from '../src/views/lanes/lane_axis';
import { launch, noBrowser, TestPage, visit } from './page';
import { noPage, run, ViewProgram, writeCases } from './program';
import { noRanks, recordRanks, type Rest } from './ranks';

const MIB = 2 ** 20;
const ROUNDS = [[8 * MIB, 16 * MIB, 8 * MIB], [64 * MIB, 4 * MIB, 2 * MIB], [0, 32 * MIB, 0], [2 * MIB, 0, 100 * MIB]];
const RANKS = ['r0.gmt', 'r1.gmt', 'r2.gmt'];

const reason = [noBrowser, noPage('view'), noRanks].find((why) => why !== '') ?? '';
if (reason !== '') console.log(reason);

describe.skipIf(reason !== '')('lanes', () => {
  let browser: Browser;
  let folder: string;
  let rests: Rest[];
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-lanes-'));
    writeCases(folder);
    rests = await recordRanks(folder, ROUNDS);
    const whole = readFileSync(path.join(folder, 'r2.gmt'));
    writeFileSync(path.join(folder, 'cut.gmt'), whole.subarray(0, whole.length - 10));
    writeFileSync(path.join(folder, 'damaged.gmt'), 'not a recording');
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  async function over(files: readonly string[], use: (test: TestPage, url: string) => Promise<void>, address = ''): Promise<void> {
    const view = await ViewProgram.open(folder, ...files);
    try {
      await visit(browser, `${view.url}#v=1&view=lanes${address}`, (test) => use(test, view.url));
    } finally {
      await view.close();
    }
  }

  it('by the clock: each moment has the bytes that all ranks held', async () => {
    await over(RANKS, async (test, url) => {
      const axis = await axisOf(test, null);
      expect(axis.align).toBe('clock');
      for (const { from, to, bytes } of rests) {
        const range = [from, to].map((ns) => Number(ns - axis.first!) - axis.base);
        await go(test, `${url}#v=1&view=lanes&lanes_range=${range.join('_')}`);
        await point(test, 1, 0.5);
        expect(await values(test)).toEqual(bytes.map(formatBytes));
        expect(await test.page.locator('.lane-moment.pointer').allTextContents()).toEqual(bytes.map(formatBytes));
        expect(await test.page.locator('.lanes-moment').textContent()).toMatch(/\(\d\d:\d\d:\d\d\.\d{3}\): the most within/);
      }
    });
  });

  it('from the beginnings: the peak of each lane is that of its report', async () => {
    await over(RANKS, async (test, url) => {
      await test.page.getByLabel('Align').selectOption('start');
      await test.idle();
      expect(await test.page.locator('.lane-bytes + .muted').allTextContents()).toEqual([72, 52, 108].map((mib) => `peak ${formatBytes(mib * MIB)}`));
      for (const [i, name] of RANKS.entries()) {
        const { devices } = JSON.parse(run(folder, 'report', '--json', name)) as Report;
        const heap = devices[0]!.heaps.find(({ heap }) => heap === 'driver')!;
        await go(test, `${url}#v=1&view=lanes&align=start&lanes_range=${heap.peak_live_t_ns}_${heap.peak_live_t_ns + 2e6}`);
        await point(test, 0, 0.5);
        expect((await values(test))[i]).toBe(formatBytes(heap.peak_live_bytes));
      }
    });
  });

  it.each(['clock', 'step'] as const)('over %s, at any zoom: the bytes are those of the curves', async (align) => {
    const random = new Random(7);
    const names = ['leak.jsonl', 'fragmentation.jsonl', 'short.jsonl'];
    await over(names, async (test, url) => {
      const axis = await axisOf(test, align);
      const source = new HttpSource(url);
      const { meta } = await test.state();
      let compared = 0;
      for (let round = 0; round < 12; ++round) {
        const size = (axis.domain.to - axis.domain.from) / 2 ** (4 + random.below(8));
        const from = axis.domain.from + (random.below(1000) / 1000) * (axis.domain.to - axis.domain.from - size);
        await go(test, `${url}#v=1&view=lanes&align=${align}&lanes_range=${from}_${from + size}`);
        const { position, column } = await point(test, random.below(3), random.below(1000) / 1000);
        const seen = await values(test);
        for (const [i, file] of meta!.files.entries()) {
          const middle = position - axis.shiftOf(file)!;
          const { series } = await source.curve({ file: i, lane: file.lanes[0]!.lane, axis: axis.axis, from: middle - 2 * column, to: middle + 2 * column, columns: 1 });
          const { min, max } = series.get('live')!;
          // The edges of the picture's columns are not known here: bytes that change are left out.
          if (min[0] !== max[0]) continue;
          ++compared;
          expect(seen[i], `${align} ${position} of ${file.name}`).toBe(formatBytes(max[0]!));
        }
      }
      expect(compared).toBeGreaterThan(5);
    });
  });

  it('a click selects the recording and the moment for all views, and Back undoes it', async () => {
    await over(RANKS, async (test, url) => {
      const axis = await axisOf(test, null);
      const { from, to, bytes } = rests[1]!;
      await go(test, `${url}#v=1&view=lanes&lanes_range=${[from, to].map((ns) => Number(ns - axis.first!) - axis.base).join('_')}`);
      await point(test, 2, 0.5);
      await test.page.mouse.down();
      await test.page.mouse.up();
      await test.page.mouse.move(0, 0);
      await written(test, 'file=2');
      const { file, cursor } = await test.state();
      expect(file).toBe(2);
      expect(await values(test)).toEqual(bytes.map(formatBytes)); // also without the pointer: the cursor's
      expect(await test.page.getByRole('listitem', { name: /^r2\.gmt \(rank 2\)/ }).getAttribute('aria-current')).toBe('true');
      const address = test.page.url();
      // Other views are about that moment.
      await test.show('Table');
      expect(await test.page.locator('main').textContent()).toContain(formatBytes(bytes[2]!));
      expect((await test.state()).cursor).toBe(cursor);
      await back(test);
      expect((await test.state()).view).toBe('lanes');
      await back(test);
      expect(await test.state()).toMatchObject({ file: 0, view: 'lanes' });
      // The link shows the same.
      await go(test, address);
      expect(await values(test)).toEqual(bytes.map(formatBytes));
    });
  });

  it('the name of a lane opens its timeline, in one step of the history', async () => {
    await over(RANKS, async (test, url) => {
      await go(test, `${url}#v=1&view=lanes`);
      await test.page.getByRole('listitem', { name: /^r1\.gmt \(rank 1\)/ }).getByRole('button', { name: /^r1\.gmt/ }).first().click();
      await written(test, 'file=1');
      expect(await test.state()).toMatchObject({ file: 1, view: 'timeline' });
      await back(test);
      expect(await test.state()).toMatchObject({ file: 0, view: 'lanes' });
    });
  });

  it('zooms and moves all lanes by wheel, pointer and keys, and Back undoes it', async () => {
    await over(RANKS, async (test) => {
      const { domain, base } = await axisOf(test, null);
      const size = (state: State): number => (state.lanesRange === null ? domain.to - domain.from : state.lanesRange.to - state.lanesRange.from);
      const { x, y } = await point(test, 1, 0.5);
      await test.page.mouse.wheel(0, -600);
      await test.idle();
      const zoomedIn = await test.state();
      expect(size(zoomedIn)).toBeLessThan((domain.to - domain.from) / 2);
      await test.page.mouse.down();
      await test.page.mouse.move(x - 200, y, { steps: 3 });
      await test.page.mouse.up();
      await test.idle();
      const moved = await test.state();
      expect(moved.lanesRange!.from).toBeGreaterThan(zoomedIn.lanesRange!.from);
      expect(size(moved)).toBeCloseTo(size(zoomedIn), -3);
      expect(moved.file).toBe(0); // a drag selects nothing
      await test.press('KeyW');
      expect(size(await test.state())).toBeLessThan(size(moved));
      await test.press('End');
      expect((await test.state()).lanesRange!.to + base).toBeCloseTo(domain.to, -3);
      await test.press('Home', 'KeyD', 'KeyA', 'KeyS');
      expect((await test.state()).lanesRange!.from + base).toBe(domain.from);
      await written(test, 'lanes_range=');
      await test.press('0');
      expect((await test.state()).lanesRange).toBeNull();
      await test.press('KeyX');
      expect((await test.state()).lanes.align).toBe('start');
      expect(await test.page.getByLabel('Align').inputValue()).toBe('start');
      await back(test);
      expect((await test.state()).lanes.align).toBeNull();
    });
  });

  it('keeps order, pins and what is hidden in the address', async () => {
    await over(RANKS, async (test, url) => {
      const names = async (): Promise<string[][]> => Promise.all(['Pinned lanes', 'Lanes'].map((name) => titles(test.page.getByRole('list', { name, exact: true }))));
      const press = async (name: RegExp): Promise<void> => {
        await test.page.getByRole('button', { name }).click();
        await test.idle();
      };
      expect(await names()).toEqual([[], ['r0.gmt', 'r1.gmt', 'r2.gmt']]);
      await press(/^Move r2.* up/);
      expect(await names()).toEqual([[], ['r0.gmt', 'r2.gmt', 'r1.gmt']]);
      await press(/^Pin r1/);
      expect(await names()).toEqual([['r1.gmt'], ['r0.gmt', 'r2.gmt']]);
      await test.page.locator('.lane-head', { hasText: 'r2.gmt' }).dragTo(test.page.locator('.lane-head', { hasText: 'r0.gmt' }));
      await test.idle();
      expect(await names()).toEqual([['r1.gmt'], ['r2.gmt', 'r0.gmt']]);
      await press(/^Hide r0/);
      expect(await names()).toEqual([['r1.gmt'], ['r2.gmt']]);
      await written(test, 'lanes_toggled=0.0');
      const address = test.page.url();
      await back(test);
      expect(await names()).toEqual([['r1.gmt'], ['r2.gmt', 'r0.gmt']]);
      await go(test, url);
      await go(test, address);
      expect(await names()).toEqual([['r1.gmt'], ['r2.gmt']]);
      await test.page.getByText('Lanes: 2 of 3').click();
      await test.page.getByRole('group', { name: 'r0.gmt' }).getByRole('checkbox').check();
      await test.idle();
      expect(await names()).toEqual([['r1.gmt'], ['r2.gmt', 'r0.gmt']]);
      for (const rank of [0, 1, 2]) await press(new RegExp(`^Hide r${rank}`));
      await press(/^Show the usual lanes/);
      expect(await names()).toEqual([[], ['r0.gmt', 'r1.gmt', 'r2.gmt']]);
    });
  });

  it('of a cut or damaged recording say so', async () => {
    await over(['r0.gmt', 'cut.gmt', 'damaged.gmt'], async (test) => {
      const { meta, progress } = await test.state();
      const lane = (name: string): Locator => test.page.getByRole('listitem', { name });
      expect(meta!.files[1]!.lacks[0]).toMatch(/^cut\.gmt /);
      expect(await lane('cut.gmt').textContent()).toContain(meta!.files[1]!.lacks[0]!);
      expect(await lane('damaged.gmt').textContent()).toContain(progress!.files[2]!.error);
      expect(await lane('r0.gmt').locator('.lacks').count()).toBe(0);
    });
  });

  it('of one recording are its devices and heaps, also in a standalone file', async () => {
    const check = async (test: TestPage): Promise<void> => {
      const { meta } = await test.state();
      const { lanes } = meta!.files[0]!;
      expect(lanes.length).toBeGreaterThan(1);
      expect(await test.page.locator('.lane-label').allTextContents()).toEqual(lanes.map(({ label }) => label));
      await point(test, 0, 0.9);
      expect((await values(test)).every((value) => /B$/.test(value))).toBe(true);
      // The name leads to the timeline of the lane.
      await test.page.getByRole('listitem').nth(1).getByRole('button', { name: 'leak.jsonl', exact: true }).click();
      await test.idle();
      expect(await test.state()).toMatchObject({ view: 'timeline', lane: lanes[1]!.lane });
    };
    await over(['leak.jsonl'], check);
    run(folder, 'export', '--format', 'html', 'leak.jsonl', '-o', 'leak.html');
    await visit(browser, `${pathToFileURL(path.join(folder, 'leak.html')).href}#v=1&view=lanes`, check);
  });
});

interface Report {
  readonly devices: readonly { readonly heaps: readonly { readonly heap: string; readonly peak_live_bytes: number; readonly peak_live_t_ns: number }[] }[];
}

async function axisOf(test: TestPage, align: LaneAlignment | null): Promise<LaneAxis> {
  return laneAxis((await test.state()).meta!.files, align);
}

/** Opens another address of the same page. */
async function go(test: TestPage, url: string): Promise<void> {
  await test.page.goto(url);
  await test.idle();
}

async function back(test: TestPage): Promise<void> {
  const before = test.page.url();
  await test.page.goBack();
  await test.page.waitForFunction((address) => location.href !== address, before);
  await test.idle();
}

function written(test: TestPage, part: string): Promise<unknown> {
  return test.page.waitForFunction((text) => location.hash.includes(text), part);
}

/** Moves the pointer to a share of a lane's width. Returns its place, and the width of a pixel. */
async function point(test: TestPage, lane: number, share: number): Promise<{ readonly x: number; readonly y: number; readonly position: number; readonly column: number }> {
  const box = (await test.page.locator('.lane-plot canvas').nth(lane).boundingBox())!;
  const width = box.width - GUTTER - MARGIN;
  const x = Math.round(box.x + GUTTER + share * width);
  const y = box.y + box.height / 2;
  await test.page.mouse.move(x, y);
  await test.idle();
  const { lanesRange, lanes } = await test.state();
  const { domain, base } = await axisOf(test, lanes.align);
  const { from, to } = lanesRange === null ? domain : { from: lanesRange.from + base, to: lanesRange.to + base };
  const column = (to - from) / width;
  return { x, y, position: from + (x - box.x - GUTTER) * column, column };
}

function values(test: TestPage): Promise<string[]> {
  return test.page.locator('.lane-bytes').allTextContents();
}

/** Returns the names of the recordings of a list of lanes, from the top. */
async function titles(list: Locator): Promise<string[]> {
  const names = await list.locator('.lane-name').allTextContents();
  return names.map((name) => name.replace(/ \(.*/, ''));
}
