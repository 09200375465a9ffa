// Tests that the call sites that hold most at the peak are drawn in different colours.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SITES } from '../src/render/palette';
import { seedsOfSuite } from '../src/testing/seeds';
import { Random } from '../src/testing/random';
import { areasOf } from '../src/views/timeline/areas';
import { topOf } from '../src/views/timeline/fitted_top';
import { launch, noBrowser, TestPage } from './page';
import { noPage, run } from './program';

const SITE_BYTES = 1 << 20;

describe.skipIf(noBrowser !== '' || noPage('export') !== '').each(seedsOfSuite([1, 2]))('call sites %i', (seed) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-sites-'));
  let browser: Browser;
  beforeAll(async () => {
    writeLog(path.join(folder, 'run.jsonl'), new Random(seed));
    run(folder, 'export', '--format', 'html', 'run.jsonl', '-o', 'run.html');
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(['light', 'dark'] as const)('have different colours on a %s page', async (colorScheme) => {
    const test = await TestPage.open(browser, { url: `${pathToFileURL(path.join(folder, 'run.html')).href}#v=1&axis=event&color=stack`, colorScheme });
    await test.untilReady();
    const file = (await test.state()).meta!.files[0]!;
    expect(new Set(file.lanes[0]!.sites).size).toBe(SITES);
    // Right of the names in the blocks.
    const { clientWidth, clientHeight } = await test.page.locator('.plot').evaluate(({ clientWidth, clientHeight }) => ({ clientWidth, clientHeight }));
    const { plot } = areasOf(file, file.lanes[0]!, clientWidth, clientHeight);
    const colors = await test.page.locator('.plot canvas').first().evaluate((canvas: HTMLCanvasElement, { left, top, height }) => {
      const { data } = canvas.getContext('2d')!.getImageData(left, top, 1, height);
      return Array.from({ length: height }, (_, y) => data.slice(4 * y, 4 * y + 3).join());
    }, { left: plot.left + plot.width - 20, top: plot.top, height: Math.floor(plot.height) });
    const rows = new Map<string, number>();
    for (const color of colors) rows.set(color, (rows.get(color) ?? 0) + 1);
    rows.delete(colors[0]!); // the background
    const high = (SITE_BYTES / topOf(file.lanes[0]!)) * plot.height;
    expect([...rows.values()].filter((count) => count > high / 2).length).toBe(SITES);
    await test.close();
  });
});

/** Writes blocks of one size from as many call sites as there are colours, then small ones from others. */
function writeLog(file: string, random: Random): void {
  const lines: object[] = [{ kind: 'header', schema: 'gpumemtrace.events/1', start_unix_ns: 1, argv: ['train.py'], devices: [{ index: 0, name: 'GPU', total_bytes: 2 ** 33 }] }];
  for (let id = 1; id <= SITES + 4; ++id) {
    lines.push({ kind: 'stack', id, frames: [{ function: `layer_${random.below(2 ** 30)}`, file: '/src/model.py', line: id, language: 'python' }] });
  }
  for (let id = 1; id <= SITES + 4; ++id) {
    const size = id <= SITES ? SITE_BYTES : 512;
    lines.push({ kind: 'alloc', t_ns: id * 1000, heap: 'driver', memory: 'device', device: 0, address: id * 16 * SITE_BYTES, size, stack: id, thread: 11, api: 'cudaMalloc' });
  }
  writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
}
