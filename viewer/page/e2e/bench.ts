// What the page costs: bench.ts OUT.json NAME=RECORDING... The program is GMT_PROGRAM. Prints one line per
// recording and leaves all figures in OUT.json, for scripts/bench --viewer.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { launch, noBrowser, TestPage } from './page';
import { Door, noDoor } from './program';

const FRAMES = 240; // per movement
const CLICKS = 12;
const LONGEST_MS = 1_800_000;

export interface Figures {
  readonly name: string;
  readonly allocations: number;
  readonly first_picture_ms: number; // from the start of the program to a page at rest with a curve
  readonly ready_ms: number; // to everything there: categories, answers
  readonly frame_median_ms: number; // while zooming and panning
  readonly frame_p95_ms: number;
  readonly click_median_ms: number; // from the click to the stack on the page
  readonly click_worst_ms: number;
  readonly page_bytes: number; // heap of the page after a collection
  readonly program_bytes: number; // resident
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Durations of frames while keys zoom in and out and pan, one key per frame. */
function frames(test: TestPage): Promise<number[]> {
  return test.page.evaluate(async (count) => {
    const keys = ['KeyW', 'KeyW', 'KeyW', 'KeyD', 'KeyD', 'KeyS', 'KeyA', 'KeyS', 'KeyS', 'KeyA'];
    const durations: number[] = [];
    let last = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
    for (let i = 0; i < count; i++) {
      const code = keys[Math.floor(i / 4) % keys.length]!;
      window.dispatchEvent(new KeyboardEvent('keydown', { code, key: code.slice(3).toLowerCase(), bubbles: true, cancelable: true }));
      const now = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
      durations.push(now - last);
      last = now;
    }
    return durations;
  }, FRAMES);
}

/** Times from a click on the plot until the details show a stack, of those clicks that hit a block. */
async function clicks(test: TestPage): Promise<number[]> {
  const times: number[] = [];
  const plot = await test.page.locator('main canvas').first().boundingBox();
  if (plot === null) return times;
  for (let i = 0; i < CLICKS; i++) {
    await test.press('Escape');
    const wait = test.page.evaluate(
      () =>
        new Promise<number>((resolve) => {
          window.addEventListener(
            'pointerdown',
            () => {
              const begin = performance.now();
              const look = (): void => {
                const isThere = document.querySelector('.drawer-body li, .drawer-body table, .drawer-body pre') !== null;
                if (isThere || performance.now() - begin > 3000) resolve(isThere ? performance.now() - begin : NaN);
                else requestAnimationFrame(look);
              };
              requestAnimationFrame(look);
            },
            { once: true, capture: true },
          );
        }),
    );
    await test.page.mouse.click(plot.x + plot.width * (0.2 + (0.6 * i) / CLICKS), plot.y + plot.height * 0.85);
    const time = await wait;
    if (!Number.isNaN(time)) times.push(time);
  }
  return times;
}

function residentBytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? NaN) * 1024;
}

async function measure(name: string, recording: string, cache: string): Promise<Figures> {
  const browser = await launch();
  const begin = performance.now();
  const door = await Door.open(cache, path.resolve(recording));
  const test = await TestPage.open(browser, { url: door.url, width: 1600, height: 900 });
  const untilState = (states: readonly string[]): Promise<unknown> =>
    test.page.waitForFunction(
      (wanted) => wanted.includes(window.gmtTest?.state().progress?.files[0]?.state ?? ''),
      states,
      { timeout: LONGEST_MS, polling: 20 },
    );
  await untilState(['coarse', 'blocks', 'ready']);
  await test.idle();
  const first_picture_ms = performance.now() - begin;
  await untilState(['ready']);
  await test.idle();
  const ready_ms = performance.now() - begin;
  await test.press('Digit1');
  const durations = await frames(test);
  await test.press('Digit0');
  const times = await clicks(test);
  const state = await test.state();
  const figures: Figures = {
    name,
    allocations: Math.max(...state.meta!.files[0]!.lanes.map((lane) => lane.blocks)),
    first_picture_ms,
    ready_ms,
    frame_median_ms: quantile(durations, 0.5),
    frame_p95_ms: quantile(durations, 0.95),
    click_median_ms: quantile(times, 0.5),
    click_worst_ms: quantile(times, 1),
    page_bytes: await test.heap(),
    program_bytes: residentBytes(door.pid),
  };
  if (test.errors.length > 0) throw new Error(test.errors.join('\n'));
  await test.close();
  await door.close();
  await browser.close();
  return figures;
}

const [out, ...recordings] = process.argv.slice(2);
const reason = noBrowser === '' ? noDoor('view') : noBrowser;
if (out === undefined || recordings.length === 0) throw new Error('usage: bench.ts OUT.json NAME=RECORDING...');
if (reason !== '') throw new Error(reason);
const cache = mkdtempSync(path.join(tmpdir(), 'gmt-bench-'));
const all: Figures[] = [];
for (const recording of recordings) {
  const equals = recording.indexOf('=');
  const figures = await measure(recording.slice(0, equals), recording.slice(equals + 1), cache);
  console.log(JSON.stringify(figures));
  all.push(figures);
  writeFileSync(out, JSON.stringify(all, null, 1));
}
rmSync(cache, { recursive: true });
