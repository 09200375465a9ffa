// Tests, at random sizes of the window and zooms, that the peak is visible: what is drawn highest is
// the peak that reports name, the pointer over it names its bytes and its event, and a click there
// selects a block of it. The table of that moment begins with the first row of `report`. Without
// GMT_PROGRAM the recordings of src/testing/ are shown. The peaks of random logs last for many
// events, so peaks of a single event have a log and a test of their own.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatBytes, formatCount } from '../src/base/format_bytes';
import type { LaneMeta } from '../src/data/protocol';
import { Random } from '../src/testing/random';
import { seedsOfSuite } from '../src/testing/seeds';
import { areasOf } from '../src/views/timeline/areas';
import { topOf } from '../src/views/timeline/fitted_top';
import { launch, noBrowser, recordedUrl, TestPage } from './page';
import { noPage, run, ViewProgram } from './program';
import { writeRandomLog } from './random_log';

interface Report {
  readonly devices: readonly {
    readonly t_ns: number;
    readonly heaps: readonly { readonly heap: string; readonly peak_live_bytes: number; readonly peak_live_t_ns: number }[];
  }[];
  readonly rows: readonly { readonly heap: string; readonly label: string; readonly bytes: number }[];
}

const WINDOWS = [[1600, 900], [1280, 720]] as const;

describe.skipIf(noBrowser !== '').each(seedsOfSuite([1, 2, 4, 11]))('the peak of recording %i', (seed) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-peak-'));
  const random = new Random(seed);
  let browser: Browser;
  let url = recordedUrl();
  let reported: number | null = null; // bytes, by `report`
  let first: Report['rows'][number] | null = null;
  beforeAll(async () => {
    browser = await launch();
    if (noPage('export') !== '') return;
    const log = path.join(folder, 'run.jsonl');
    const page = path.join(folder, 'run.html');
    writeRandomLog(log, random, 3000);
    run(folder, 'export', '--format', 'html', log, '-o', page);
    url = pathToFileURL(page).href;
    const report = JSON.parse(run(folder, 'report', '--json', log)) as Report;
    const [device] = report.devices;
    const heap = device!.heaps.find((each) => each.heap === 'pytorch')!;
    reported = heap.peak_live_bytes;
    expect(device!.t_ns).toBe(heap.peak_live_t_ns);
    first = report.rows.find((row) => row.heap === 'pytorch')!;
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Returns the pixel with the highest point of the peak, as a pointer has it, and the lane. */
  async function topOfPeak(test: TestPage): Promise<{ readonly x: number; readonly y: number; readonly lane: LaneMeta }> {
    const { meta, range, file, lane: number } = await test.state();
    const shown = meta!.files[file]!;
    const lane = shown.lanes[number]!;
    const { x, y, width, height } = (await test.page.locator('.plot').boundingBox())!;
    const { plot } = areasOf(shown, lane, width, height);
    const position = (Math.max(lane.peak_event, range.from) + Math.min(lane.peak_event + 1, range.to)) / 2; // may be partly visible
    const share = (position - range.from) / (range.to - range.from);
    const top = plot.height * (1 - lane.peak_bytes / topOf(lane));
    return { x: Math.floor(x + plot.left + share * plot.width), y: Math.floor(y + plot.top + top) + 2, lane };
  }

  /** Whether the picture is filled from the highest point of the peak down, whose pixel is given. */
  function isDrawn(test: TestPage, x: number, y: number): Promise<boolean> {
    return test.page.evaluate(
      ([left, top]) => {
        const canvas = document.querySelector<HTMLCanvasElement>('.plot canvas')!;
        const box = canvas.getBoundingClientRect();
        const ratio = canvas.width / box.width;
        // The columns beside it, because a column has up to two pixels; the rows below the edge.
        const { data } = canvas.getContext('2d')!.getImageData(Math.round((left - box.left - 2) * ratio), Math.round((top - box.top) * ratio), 5, 3);
        const pixelAt = (column: number, row: number): string => data.slice(4 * (5 * row + column), 4 * (5 * row + column) + 3).join();
        const empty = canvas.getContext('2d')!.getImageData(Math.round((left - box.left) * ratio), Math.max(0, Math.round((top - box.top - 6) * ratio)), 1, 1).data.slice(0, 3).join();
        return [0, 1, 2, 3, 4].some((column) => [0, 1, 2].every((row) => pixelAt(column, row) !== empty));
      },
      [x, y] as const,
    );
  }

  for (const [width, height] of WINDOWS) {
    it(`is drawn, named and selected at ${width}x${height}`, async () => {
      const test = await TestPage.open(browser, { url: `${url}#v=1&axis=event`, width, height });
      await test.untilReady();
      for (let zoom = 0; zoom < 4; ++zoom) {
        const { x, y, lane } = await topOfPeak(test);
        if (reported !== null) expect(lane.peak_bytes).toBe(reported);
        expect(await isDrawn(test, x, y), `zoom ${zoom}`).toBe(true);
        await test.page.mouse.move(x, y);
        await test.idle();
        const words = await test.page.locator('.tooltip').textContent();
        expect(words, `zoom ${zoom}`).toContain(`live ${formatBytes(lane.peak_bytes)} after event ${formatCount(lane.peak_event)}`);
        await test.page.mouse.click(x, y);
        await test.idle();
        const { cursor, selection } = await test.state();
        expect([cursor, selection.kind], `zoom ${zoom}`).toEqual([lane.peak_event, 'block']);
        const details = (await test.page.locator('.drawer').textContent())!;
        expect(eventOf(details, 'allocated')).toBeLessThanOrEqual(lane.peak_event);
        expect(eventOf(details, 'freed')).toBeGreaterThan(lane.peak_event);
        await test.press('Escape');
        await test.page.mouse.move(x, y + 20);
        await test.page.mouse.wheel(0, -random.below(900));
        await test.idle();
      }
      if (first !== null) {
        await test.show('Table');
        const words = await test.page.locator('.grid-body .grid-row').first().textContent();
        expect(words).toContain(`${first.label} ${formatBytes(first.bytes)}`);
      }
      await test.close();
    });
  }
});

const [FLOOR, NEEDLE] = [64 << 20, 256 << 20]; // bytes
const NEEDLES = 70;
const BETWEEN = 42; // events, from one needle to the next

describe.skipIf(noBrowser !== '' || noPage('export') !== '').each(seedsOfSuite([1, 2]))('peaks of one event %i', (seed) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-needles-'));
  const random = new Random(seed);
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
    writeNeedles(path.join(folder, 'run.jsonl'));
    run(folder, 'export', '--format', 'html', 'run.jsonl', '-o', 'run.html');
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Returns the shown needles of which no pixel has the colour of a category half way up. */
  async function missing(test: TestPage): Promise<readonly number[]> {
    const { meta, range } = await test.state();
    const file = meta!.files[0]!;
    const { width, height } = (await test.page.locator('.plot').boundingBox())!;
    const { plot } = areasOf(file, file.lanes[0]!, width, height);
    const shown = Array.from({ length: NEEDLES }, (_, i) => i).filter((i) => eventOfNeedle(i) > range.from && eventOfNeedle(i) + 1 < range.to);
    expect(shown.length).toBeGreaterThan(10);
    const xs = shown.map((i) => plot.left + ((eventOfNeedle(i) + 0.5 - range.from) / (range.to - range.from)) * plot.width);
    const y = Math.round(plot.top + plot.height * (1 - (FLOOR + NEEDLE / 2) / topOf(file.lanes[0]!)));
    const lost = await test.page.locator('.plot canvas').first().evaluate(
      (canvas: HTMLCanvasElement, at) => {
        const probe = document.body.appendChild(document.createElement('i'));
        const colourOf = (name: string): string => {
          probe.style.color = `var(${name})`;
          return (getComputedStyle(probe).color.match(/\d+/g) ?? []).slice(0, 3).join();
        };
        const plain = [colourOf('--bg'), colourOf('--rest')];
        const { data } = canvas.getContext('2d')!.getImageData(0, at.y, canvas.width, 1);
        // A column has up to two pixels.
        const isColoured = (x: number): boolean => [-2, -1, 0, 1, 2].some((by) => !plain.includes(data.slice(4 * (x + by), 4 * (x + by) + 3).join()));
        return at.xs.map((x) => !isColoured(Math.floor(x)));
      },
      { xs, y },
    );
    return shown.filter((_, i) => lost[i]);
  }

  it('are drawn in colour at any width of the window', async () => {
    const test = await TestPage.open(browser, { url: `${pathToFileURL(path.join(folder, 'run.html')).href}#v=1&view=timeline&axis=event`, height: 700 });
    await test.untilReady();
    for (let round = 0; round < 8; ++round) {
      const width = 800 + random.below(900);
      await test.page.setViewportSize({ width, height: 700 });
      await test.idle();
      expect(await missing(test), `${width} pixels`).toEqual([]);
    }
    await test.close();
  });

  it('are drawn in colour while zooming out waits for an answer', async () => {
    const program = await ViewProgram.open(folder, 'run.jsonl');
    const test = await TestPage.open(browser, { url: `${program.url}#v=1&view=timeline&axis=event`, height: 700 });
    await test.untilReady();
    const { range } = await test.state();
    let held: (() => void)[] | null = null;
    await test.page.route('**/api/blocks**', async (route) => {
      await new Promise<void>((resolve) => (held === null ? resolve() : held.push(resolve)));
      await route.continue();
    });
    for (let round = 0; round < 4; ++round) {
      await test.page.setViewportSize({ width: 800 + random.below(900), height: 700 });
      await test.press('0', 'W', 'W');
      const holding: (() => void)[] = [];
      held = holding;
      await test.page.keyboard.press('S');
      await test.page.keyboard.press('S');
      await test.page.waitForFunction((width) => window.gmtTest!.state().range.to - window.gmtTest!.state().range.from > width, 0.9 * (range.to - range.from));
      await test.page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      const lost = await missing(test);
      expect(holding).not.toHaveLength(0);
      held = null;
      for (const resolve of holding) resolve();
      await test.idle();
      expect(lost, `round ${round}`).toEqual([]);
    }
    await test.close();
    await program.close();
  });
});

function eventOfNeedle(needle: number): number {
  return (needle + 1) * BETWEEN;
}

/** Writes a log in which most events change little, and some allocate a large block that the next one frees. */
function writeNeedles(file: string): void {
  const lines: object[] = [
    { kind: 'header', schema: 'gpumemtrace.events/1', start_unix_ns: 1, argv: ['train.py'], devices: [{ index: 0, name: 'GPU', total_bytes: 2 ** 33 }] },
    { kind: 'stack', id: 1, frames: [{ function: 'step', file: '/src/train.py', line: 7, language: 'python' }] },
  ];
  const add = (kind: 'alloc' | 'free', address: number, size: number): void => {
    lines.push({ kind, t_ns: lines.length * 1000, heap: 'driver', memory: 'device', device: 0, address, size, stack: 1, thread: 11, api: kind === 'alloc' ? 'cudaMalloc' : 'cudaFree' });
  };
  add('alloc', 2 ** 40, FLOOR);
  for (let event = 2; event <= (NEEDLES + 1) * BETWEEN; ++event) {
    const at = event % BETWEEN;
    if (at === 0 && event / BETWEEN <= NEEDLES) add('alloc', 2 ** 41, NEEDLE);
    else if (at === 1 && event > BETWEEN) add('free', 2 ** 41, NEEDLE);
    else add(at % 2 === 0 ? 'alloc' : 'free', 2 ** 42 + 4096 * Math.floor(at / 2), 4096);
  }
  writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
}

/** Returns the event of a row of a block's details, Infinity if it never happened. */
function eventOf(details: string, row: string): number {
  const event = new RegExp(`${row}[^e]*event ([\\d,]+)`).exec(details)?.[1];
  return event === undefined ? Infinity : Number(event.replaceAll(',', ''));
}
