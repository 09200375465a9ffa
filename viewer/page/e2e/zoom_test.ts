// From a recording as a whole to one small block of it, by wheel and keys alone, as one does who knows
// no more than when the block was taken. GMT_ZOOM_EVENTS: how many events the recording has.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../src/base/random';
import { launch, noBrowser, TestPage } from './page';
import { Door, noDoor } from './program';
import { writeRandomLog } from './random_log';

const EVENTS = Number(process.env['GMT_ZOOM_EVENTS'] ?? 100_000);
const SHOWN = 12; // events at last
const HANG_MS = 600_000;
const GUTTER = 76; // left of the plot, whose right end is 10 pixels before that of the canvas
const MOST_TURNS = 120;

/**
 * A log with one block of 512 bytes in its middle that nobody else's stack has, freed by the next event
 * so that it lies on all others; its event.
 */
function hideNeedle(file: string): number {
  writeRandomLog(file, new Random(11), EVENTS);
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').filter((line) => /"kind":"(header|stack|mark|alloc|free)"/.test(line)); // kinds whose place in the order of events is plain
  const middle = Math.floor(lines.length / 2);
  const t_ns = (JSON.parse(lines[middle - 1]!) as { t_ns: number }).t_ns;
  const block = { heap: 'pytorch', memory: 'block', device: 0, address: 0x6f0000000000, size: 512, thread: 11 };
  const stack = { kind: 'stack', id: 99, frames: [{ function: 'needle', file: '/src/haystack.py', line: 7, language: 'python' }] };
  const needle = [stack, { kind: 'alloc', t_ns, ...block, stack: 99 }, { kind: 'free', t_ns, ...block }];
  lines.splice(middle, 0, ...needle.map((line) => JSON.stringify(line)));
  writeFileSync(file, lines.join('\n') + '\n');
  return lines.slice(0, middle).filter((line) => /"kind":"(alloc|free)"/.test(line)).length;
}

/** Where the highest block ends over a place of the plot, as one sees it: the last colour below four pixels of nothing. */
function topOfStack(test: TestPage, x: number): Promise<number> {
  return test.page.evaluate((at) => {
    const canvas = document.querySelector<HTMLCanvasElement>('.plot canvas')!;
    const scale = canvas.width / canvas.clientWidth;
    const bottom = canvas.height - Math.round(30 * scale);
    // Read from a copy: Chromium warns of a canvas of its own that is read again and again.
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

const reason = noBrowser === '' ? noDoor('view') : noBrowser;
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

  it('leads from all events to one block of 512 bytes', async () => {
    const event = hideNeedle(path.join(folder, 'run.jsonl'));
    const door = await Door.open(folder, 'run.jsonl');
    const test = await TestPage.open(browser, { url: door.url });
    await test.page.waitForFunction(() => window.gmtTest?.state().progress?.files[0]?.state === 'ready', undefined, { timeout: HANG_MS });
    await test.idle();
    const plot = (await test.page.locator('.plot').boundingBox())!;
    const xOfNeedle = async (): Promise<number> => {
      const { range } = await test.state();
      return GUTTER + ((event + 1.5 - range.from) / (range.to - range.from)) * (plot.width - GUTTER - 10);
    };
    let turns = 0;
    const turn = async (x: number, y: number): Promise<void> => {
      expect(++turns, 'turns of the wheel').toBeLessThan(MOST_TURNS);
      await test.page.mouse.move(plot.x + x, plot.y + y);
      await test.page.mouse.wheel(0, -400);
      await test.idle();
    };

    for (let { range } = await test.state(); range.to - range.from > SHOWN; { range } = await test.state()) {
      await turn(await xOfNeedle(), plot.height / 2);
    }
    await test.press('g'); // heights as this window needs them
    await test.page.keyboard.down('Alt');
    const size = async (): Promise<number> => {
      const { band } = await test.state();
      return band === null ? Infinity : band.high - band.low;
    };
    while ((await size()) > 4096) {
      const x = await xOfNeedle();
      await turn(x, await topOfStack(test, x));
    }
    await test.page.keyboard.up('Alt');
    const x = await xOfNeedle();
    await test.page.mouse.click(plot.x + x, plot.y + (await topOfStack(test, x)) + 8);
    await test.idle();

    expect((await test.state()).selection.kind).toBe('block');
    const details = await test.page.locator('.drawer').textContent();
    expect(details).toContain('512 B');
    expect(details).toContain('needle');
    expect(test.errors).toEqual([]);
    await test.close();
    await door.close();
  }, HANG_MS);
});
