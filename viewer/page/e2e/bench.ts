// Measures what the page costs: bench.ts OUT.json NAME=RECORDING... The program is GMT_PROGRAM.
// Prints one line per recording and writes all figures to OUT.json, for scripts/bench --viewer.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { clicks, frames, quantile, residentBytes } from './measures';
import { launch, noBrowser, TestPage } from './page';
import { ViewProgram, noPage } from './program';

const FRAMES = 240; // per movement
const CLICKS = 12;
const LONGEST_MS = 1_800_000;

export interface Figures {
  readonly name: string;
  readonly allocations: number;
  readonly first_curves_ms: number; // from the start of the program to curves of the part read so far, or of the whole
  readonly first_picture_ms: number; // from the start of the program to an idle page with a curve
  readonly ready_ms: number; // until everything is loaded: categories, answers
  readonly frame_median_ms: number; // while zooming and panning
  readonly frame_p95_ms: number;
  readonly click_median_ms: number; // from the click to the stack on the page
  readonly click_worst_ms: number;
  readonly page_bytes: number; // heap of the page after a garbage collection
  readonly program_bytes: number; // resident
}

async function measure(name: string, recording: string, cache: string): Promise<Figures> {
  const browser = await launch();
  const begin = performance.now();
  const view = await ViewProgram.open(cache, path.resolve(recording));
  const test = await TestPage.open(browser, { url: `${view.url}#v=1&view=timeline`, width: 1600, height: 900 });
  const untilState = (states: readonly string[]): Promise<unknown> =>
    test.page.waitForFunction(
      (wanted) => wanted.includes(window.gmtTest?.state().progress?.files[0]?.state ?? ''),
      states,
      { timeout: LONGEST_MS, polling: 20 },
    );
  // For a short recording the whole picture comes first.
  const isRead = await test.page.waitForFunction(
    () => (window.gmtTest?.state().progress?.files[0]?.state !== 'loading' ? 'whole' : document.querySelector('.so-far path') !== null && 'part'),
    undefined,
    { polling: 20 },
  );
  const seen = performance.now() - begin;
  await untilState(['coarse', 'blocks', 'ready']);
  await test.idle();
  const first_picture_ms = performance.now() - begin;
  const first_curves_ms = (await isRead.jsonValue()) === 'part' ? seen : first_picture_ms;
  await untilState(['ready']);
  await test.idle();
  const ready_ms = performance.now() - begin;
  await test.press('Digit2');
  const durations = await frames(test, FRAMES);
  await test.press('Digit0');
  const times = await clicks(test, CLICKS);
  if (times.length === 0) throw new Error(`${name}: no click hit a block`);
  const state = await test.state();
  const figures: Figures = {
    name,
    allocations: Math.max(...state.meta!.files[0]!.lanes.map((lane) => lane.blocks)),
    first_curves_ms,
    first_picture_ms,
    ready_ms,
    frame_median_ms: quantile(durations, 0.5),
    frame_p95_ms: quantile(durations, 0.95),
    click_median_ms: quantile(times, 0.5),
    click_worst_ms: quantile(times, 1),
    page_bytes: await test.heap(),
    program_bytes: residentBytes(view.pid),
  };
  if (test.errors.length > 0) throw new Error(test.errors.join('\n'));
  await test.close();
  await view.close();
  await browser.close();
  return figures;
}

const [out, ...recordings] = process.argv.slice(2);
const reason = noBrowser === '' ? noPage('view') : noBrowser;
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
