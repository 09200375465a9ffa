// Measures the latency of the page of `gpumemtrace view --live` with few and with many blocks in
// its window: from the return of an allocation in the program until the page knows it, and until
// the frame that has drawn it. The program is GMT_PROGRAM. Prints one line per size, for
// scripts/bench --viewer.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { HANG_MS, LiveViewProgram, noLive, Recorded } from './live';
import { quantile, residentBytes } from './measures';
import { launch, noBrowser, TestPage } from './page';

const SIZES = [0, 100_000, 900_000]; // allocations made and freed before
const ROUNDS = 15;
const MIB = 2 ** 20;

interface Late {
  readonly reported: number; // ms until the page shows the bytes held now, which the collector reports
  readonly known: number; // ms until a generation contains the block
  readonly drawn: number;
}

/**
 * Allocates memory, and measures when the page knew and when it drew that `held` bytes are held.
 */
async function measureOne(program: Recorded, test: TestPage, held: number): Promise<Late> {
  const noted = test.page.evaluate(async (wanted) => {
    const times = { reported: 0, known: 0 };
    while (times.known === 0 || times.reported === 0) {
      const state = window.gmtTest!.state();
      const lane = state.meta?.files[0]?.lanes[0];
      const heap = state.progress?.files[0]?.live?.heaps.find((each) => each.heap === 'driver');
      if (times.reported === 0 && heap?.live_bytes === wanted) times.reported = Date.now();
      if (times.known === 0 && lane?.end_bytes === wanted) times.known = Date.now();
      await new Promise((resolve) => setTimeout(resolve, 4));
    }
    await window.gmtTest!.idle();
    return { ...times, drawn: Date.now() };
  }, held);
  const done = await program.take(MIB);
  const { reported, known, drawn } = await noted;
  return { reported: reported - done.ms, known: known - done.ms, drawn: drawn - done.ms };
}

async function measure(count: number): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-live-bench-'));
  const program = await Recorded.start(folder);
  await program.take(MIB);
  for (let left = count; left > 0; left -= 50_000) await program.pass(Math.min(left, 50_000), 4096);
  const view = await LiveViewProgram.open(folder, String(program.pid));
  const browser = await launch();
  const test = await TestPage.open(browser, { url: view.url, width: 1600, height: 900 });
  await test.page.waitForFunction(() => window.gmtTest?.state().meta?.files[0]?.lanes[0]?.end_bytes === 2 ** 20, undefined, { timeout: HANG_MS });
  const all: Late[] = [];
  for (let i = 0; i < ROUNDS; ++i) {
    await test.page.waitForTimeout((i * 271) % 700);
    all.push(await measureOne(program, test, (i + 2) * MIB));
  }
  const of = (part: keyof Late): string => {
    const values = all.map((late) => late[part]).sort((a, b) => a - b);
    return `${quantile(values, 0.5).toFixed(0)} ms (maximum ${values[values.length - 1]!.toFixed(0)})`;
  };
  const blocks = Math.max(...(await test.state()).meta!.files[0]!.lanes.map((lane) => lane.blocks));
  console.log(
    `live, ${blocks.toLocaleString('en')} blocks in the window: what is held now ${of('reported')}, the block ${of('known')}, ` +
      `drawn ${of('drawn')}; program ${Math.round(residentBytes(view.pid) / MIB)} MiB`,
  );
  // While the events of the past are read, a window may have passed before its answers are asked for. The server
  // refuses that, and the page asks for those of the newer one.
  const shown = (await test.state()).meta!.files[0]!.live!.window;
  const hasPassed = (error: string): boolean => Number(/status of 400 .*api\/answer\?.*&window=(\d+)$/.exec(error)?.[1] ?? shown) < shown;
  test.errors.splice(0, test.errors.length, ...test.errors.filter((error) => !hasPassed(error)));
  await test.close();
  await browser.close();
  await view.close();
  await program.stop();
  rmSync(folder, { recursive: true, force: true });
}

const reason = noBrowser === '' ? noLive : noBrowser;
if (reason !== '') throw new Error(reason);
for (const count of process.argv.length > 2 ? process.argv.slice(2).map(Number) : SIZES) await measure(count);
