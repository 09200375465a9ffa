// Zooms from a whole recording to one small block with only wheel and keys, like a user who only
// knows when the block was allocated. GMT_ZOOM_EVENTS is the number of events of the recording.
// GMT_ZOOM_RECORDING is a recording of any length to use instead.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../src/testing/random';
import type { Found } from '../src/data/protocol';
import { launch, noBrowser, TestPage } from './page';
import { ViewProgram, noPage } from './program';
import { writeRandomLog } from './random_log';

const EVENTS = Number(process.env['GMT_ZOOM_EVENTS'] ?? 100_000);
const RECORDING = process.env['GMT_ZOOM_RECORDING'] ?? '';
const SHOWN = 12; // events shown at the end
const HANG_MS = 600_000;
const GUTTER = 76; // left of the plot, whose right end is 10 pixels before that of the canvas
const MAX_TURNS = 120;

/**
 * Writes a log with one block of 512 bytes in its middle. The block has a unique stack and is freed
 * by the next event, so that it is on top of all others. Returns its event.
 */
function hideNeedle(file: string): number {
  writeRandomLog(file, new Random(11), EVENTS);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').filter((line) => /"kind":"(header|stack|mark|alloc|free)"/.test(line)); // only kinds whose place in the order of events is obvious
  const middle = Math.floor(lines.length / 2);
  const t_ns = (JSON.parse(lines[middle - 1]!) as { t_ns: number }).t_ns;
  const block = { heap: 'pytorch', memory: 'block', device: 0, address: 0x6f0000000000, size: 512, thread: 11 };
  const stack = { kind: 'stack', id: 99, frames: [{ function: 'needle', file: '/src/haystack.py', line: 7, language: 'python' }] };
  const needle = [stack, { kind: 'alloc', t_ns, ...block, stack: 99 }, { kind: 'free', t_ns, ...block }];
  lines.splice(middle, 0, ...needle.map((line) => JSON.stringify(line)));
  writeFileSync(file, lines.join('\n') + '\n');
  return lines.slice(0, middle).filter((line) => /"kind":"(alloc|free)"/.test(line)).length;
}

/**
 * Returns where the top block ends over a point of the plot as a user sees it: the last colour
 * below four empty pixels.
 */
function topOfStack(test: TestPage, x: number): Promise<number> {
  return test.page.evaluate((at) => {
    const canvas = document.querySelector<HTMLCanvasElement>('.plot canvas')!;
    const scale = canvas.width / canvas.clientWidth;
    const bottom = canvas.height - Math.round(30 * scale);
    // Read from a copy, because Chromium warns about repeated reads of an ordinary canvas.
    const column = document.createElement('canvas');
    [column.width, column.height] = [1, bottom];
    const context = column.getContext('2d', { willReadFrequently: true })!;
    context.drawImage(canvas, Math.round(at * scale), 0, 1, bottom, 0, 0, 1, bottom);
    const { data } = context.getImageData(0, 0, 1, bottom);
    const isEmpty = (y: number): boolean => [0, 1, 2].every((part) => data[4 * y + part]! > 250);
    let y = bottom - 1;
    while (y > 4 && !(isEmpty(y) && isEmpty(y - 1) && isEmpty(y - 2) && isEmpty(y - 3))) --y;
    return (y + 1) / scale;
  }, x);
}

interface Needle {
  readonly row: number;
  readonly event: number; // of its birth
  readonly bytes: number;
}

/**
 * Returns the smallest block of the first lane that lives for one event, among those allocated in
 * the middle. It is on top of all others.
 */
async function smallestInTheMiddle(test: TestPage): Promise<Needle> {
  const { events } = (await test.state()).meta!.files[0]!;
  const from = Math.floor(events / 2);
  const query = new URLSearchParams({ file: '0', lane: '0', of: 'born', from: String(from), to: String(Math.min(events, from + 9000)), limit: '10000' });
  const found = await test.page.evaluate(async (asked) => (await fetch(`api/find?${asked}`)).json() as Promise<Found>, query.toString());
  const needles = found.rows
    .map((row, i) => ({ row, event: found.birth[i]!, bytes: found.size[i]!, death: found.death[i]! }))
    .filter((block) => block.death === block.event + 1)
    .sort((a, b) => a.bytes - b.bytes);
  expect(needles.length, 'blocks that live for one event').toBeGreaterThan(0);
  return needles[0]!;
}

const reason = noBrowser === '' ? noPage('view') : noBrowser;
if (reason !== '') console.log(reason);
describe.skipIf(reason !== '')('the timeline', () => {
  let browser: Browser;
  let folder: string;
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-zoom-'));
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  /**
   * Opens the page, waits until everything is loaded, and zooms from all events to a block that is
   * on top of all others.
   */
  async function find(recording: string, needleOf: (test: TestPage) => Promise<Needle> | Needle): Promise<{ test: TestPage; view: ViewProgram; needle: Needle }> {
    const view = await ViewProgram.open(folder, recording);
    const test = await TestPage.open(browser, { url: `${view.url}#v=1&view=timeline` });
    await test.page.waitForFunction(() => window.gmtTest?.state().progress?.files[0]?.state === 'ready', undefined, { timeout: HANG_MS });
    await test.idle();
    const needle = await needleOf(test);
    const plot = (await test.page.locator('.plot').boundingBox())!;
    const xOfNeedle = async (): Promise<number> => {
      const { range } = await test.state();
      return GUTTER + ((needle.event + 0.5 - range.from) / (range.to - range.from)) * (plot.width - GUTTER - 10);
    };
    let turns = 0;
    const turn = async (x: number, y: number): Promise<void> => {
      expect(++turns, 'turns of the wheel').toBeLessThan(MAX_TURNS);
      await test.page.mouse.move(plot.x + x, plot.y + y);
      await test.page.mouse.wheel(0, -400);
      await test.idle();
    };

    for (let { range } = await test.state(); range.to - range.from > SHOWN; { range } = await test.state()) {
      await turn(await xOfNeedle(), plot.height / 2);
    }
    await test.press('g'); // fit the heights to this window
    await test.page.keyboard.down('Alt');
    const size = async (): Promise<number> => {
      const { band } = await test.state();
      return band === null ? Infinity : band.high - band.low;
    };
    while ((await size()) > 8 * needle.bytes) {
      const x = await xOfNeedle();
      await turn(x, await topOfStack(test, x));
    }
    await test.page.keyboard.up('Alt');
    const x = await xOfNeedle();
    await test.page.mouse.click(plot.x + x, plot.y + (await topOfStack(test, x)) + 8);
    await test.idle();
    return { test, view, needle };
  }

  it('leads from all events to one block of 512 bytes', async () => {
    const event = hideNeedle(path.join(folder, 'run.jsonl'));
    const { test, view } = await find('run.jsonl', () => ({ row: -1, event: event + 1, bytes: 512 }));
    expect((await test.state()).selection.kind).toBe('block');
    const details = await test.page.locator('.drawer').textContent();
    expect(details).toContain('512 B');
    expect(details).toContain('needle');
    expect(test.errors).toEqual([]);
    await test.close();
    await view.close();
  }, HANG_MS);

  it.skipIf(RECORDING === '')('leads to one block of the recording named by GMT_ZOOM_RECORDING', async () => {
    const { test, view, needle } = await find(path.resolve(RECORDING), smallestInTheMiddle);
    expect((await test.state()).selection).toEqual({ kind: 'block', row: needle.row });
    expect(await test.page.locator('.drawer .stack').count()).toBeGreaterThan(0);
    expect(test.errors).toEqual([]);
    console.log(`${(await test.state()).meta!.files[0]!.lanes[0]!.blocks} blocks, to one of ${needle.bytes} bytes`);
    await test.close();
    await view.close();
  }, HANG_MS);
});
