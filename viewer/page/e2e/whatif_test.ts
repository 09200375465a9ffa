// Tests what another setting would have reserved, drawn over what was reserved: the line is as high as
// `gpumemtrace whatif` predicts, at the moment at which it does.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatBytes } from '../src/base/format_bytes';
import { areasOf } from '../src/views/timeline/areas';
import { topOf } from '../src/views/timeline/fitted_top';
import { launch, noBrowser, TestPage } from './page';
import { noPage, run } from './program';
import { through } from './through';
import { TwoTransports } from './two_transports';

const MIB = 2 ** 20;
const SETTING = 'expandable_segments:True';
const NAME = 'run';
const EVENTS = 8;
const DASH = 4; // px, of a line that is found
const NEAR = 24; // px, beside which a dash begins; the sign of the peak may be in front

const reason = noBrowser === '' ? noPage('view') : noBrowser;
describe.skipIf(reason !== '')('another setting on the timeline', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-whatif-'));
  let browser: Browser;
  beforeAll(async () => {
    writeLog(path.join(folder, `${NAME}.jsonl`));
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  it.each([[1280, 720, 'light'], [1600, 900, 'dark']] as const)('is a line as high as the command predicts, at %ix%i', async (width, height, scheme) => {
    const [recorded, predicted] = peaksOfCommand(folder);
    expect(predicted).toBeLessThan(recorded);
    await through('view', browser, folder, [NAME], async (test) => {
      await test.page.emulateMedia({ colorScheme: scheme });
      await test.page.setViewportSize({ width, height });
      await test.idle();
      expect(await highestOf(test, 'accent')).toBeNull();
      await test.page.getByLabel('What if').selectOption(SETTING);
      await test.idle();
      expect(await test.page.locator('.prediction').textContent()).toContain(`${SETTING}: would reserve ${formatBytes(predicted)} at the peak instead of ${formatBytes(recorded)}`);
      // From the fourth event on two blocks are live; before the eighth one the third segment is allocated.
      for (const [color, bytes, event] of [['accent', predicted, 4], ['fg', recorded, 7]] as const) {
        const { y, x } = (await highestOf(test, color))!;
        const plot = await plotOf(test);
        expect(Math.abs(y - yOf(plot, bytes)), color).toBeLessThanOrEqual(1.5);
        expect(Math.abs(x - DASH - (plot.left + (event / (EVENTS + 1)) * plot.width)), color).toBeLessThanOrEqual(NEAR);
      }
    }, '#v=1&view=timeline&axis=event&color=thread');
  });

  it('is part of the address, with settings that the page does not offer', async () => {
    await through('view', browser, folder, [NAME], async (test) => {
      expect(await test.page.locator('.prediction').textContent()).toContain('max_split_size_mb:64: would reserve');
      await test.page.getByLabel('What if').selectOption('as recorded');
      await test.idle();
      expect(await test.page.locator('.prediction').count()).toBe(0);
    }, '#v=1&view=timeline&whatif=max_split_size_mb:64');
  });

  it('is refused in words if PyTorch has no such setting', async () => {
    await through('view', browser, folder, [NAME], async (test) => {
      expect(await test.page.locator('.prediction').textContent()).toContain('no_such_setting');
      expect(await highestOf(test, 'accent')).toBeNull();
      expect(test.errors.splice(0).every((error) => error.includes('400'))).toBe(true);
    }, '#v=1&view=timeline&axis=event&color=thread&whatif=no_such_setting:1');
  });

  it('is part of a standalone file, for the settings that the page offers', async () => {
    const [recorded, predicted] = peaksOfCommand(folder);
    await through('export', browser, folder, [NAME], async (test) => {
      for (const setting of await test.page.getByLabel('What if').locator('option').evaluateAll((all) => all.map((each) => (each as HTMLOptionElement).value))) {
        await test.page.getByLabel('What if').selectOption(setting);
        await test.idle();
        if (setting !== '') expect(await test.page.locator('.prediction').textContent()).toContain(`${setting}: would reserve`);
      }
      await test.page.getByLabel('What if').selectOption(SETTING);
      await test.idle();
      expect(await test.page.locator('.prediction').textContent()).toContain(`${SETTING}: would reserve ${formatBytes(predicted)} at the peak instead of ${formatBytes(recorded)}`);
      const { y } = (await highestOf(test, 'accent'))!;
      expect(Math.abs(y - yOf(await plotOf(test), predicted))).toBeLessThanOrEqual(1.5);
    }, '#v=1&view=timeline&axis=event&color=thread');
  });

  it('is the same from the server and from a standalone file', async () => {
    const own = mkdtempSync(path.join(folder, 'transports-'));
    writeLog(path.join(own, `${NAME}.jsonl`));
    const transports = await TwoTransports.open(own, `${NAME}.jsonl`);
    for (const axis of ['event', 'time'] as const) {
      const end = axis === 'event' ? EVENTS + 1 : EVENTS * 1000;
      for (const [from, to, columns] of [[0, end, 1], [0, end, 9], [-0.3 * end, 0.7 * end, 50], [0.4 * end, 0.6 * end, 200]] as const) {
        const query = { file: 0, lane: 0, axis, from, to, columns, settings: SETTING };
        expect(await transports.file.predicted(query), JSON.stringify(query)).toEqual(await transports.server.predicted(query));
      }
    }
    await transports.close();
  });

  it('names the settings that a standalone file has, if the address asks for others', async () => {
    await through('export', browser, folder, [NAME], async (test) => {
      expect(await test.page.locator('.prediction').textContent()).toContain(`this file has only ${SETTING}, `);
    }, '#v=1&view=timeline&whatif=max_split_size_mb:64');
  });
});

/** Returns the predicted peaks of reserved memory with the recorded and the other setting. */
function peaksOfCommand(folder: string): readonly [number, number] {
  const { scenarios } = JSON.parse(run(folder, 'whatif', '--json', '--set', SETTING, `${NAME}.jsonl`)) as { readonly scenarios: readonly { readonly peak_reserved_bytes: number }[] };
  return [scenarios[0]!.peak_reserved_bytes, scenarios[1]!.peak_reserved_bytes];
}

interface Plot {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly high: number; // bytes at its top
}

async function plotOf(test: TestPage): Promise<Plot> {
  const { meta, file, lane: number } = await test.state();
  const shown = meta!.files[file]!;
  const lane = shown.lanes[number]!;
  const { width, height } = (await test.page.locator('.plot').boundingBox())!;
  return { ...areasOf(shown, lane, width, height).plot, high: topOf(lane) };
}

function yOf({ top, height, high }: Plot, bytes: number): number {
  return top + height * (1 - bytes / high);
}

/** Returns the highest point of a colour in the plot, or null if it has none. Lines are dashes with soft edges. */
async function highestOf(test: TestPage, color: 'accent' | 'fg'): Promise<{ readonly x: number; readonly y: number } | null> {
  return test.page.locator('.plot canvas').first().evaluate((canvas: HTMLCanvasElement, { name, soft, dash, left, top, width, height }) => {
    const shade = document.createElement('span');
    shade.style.color = `var(${name})`;
    document.body.append(shade);
    const wanted = getComputedStyle(shade).color.match(/\d+/g)!.map(Number);
    shade.remove();
    const [w, h] = [Math.floor(width), Math.floor(height)];
    const { data } = canvas.getContext('2d')!.getImageData(Math.ceil(left), Math.ceil(top), w, h);
    for (let y = 0; y < h; ++y) {
      let run = 0;
      for (let x = 0; x < w; ++x) {
        const at = 4 * (y * w + x);
        run = [0, 1, 2].every((i) => Math.abs(data[at + i]! - wanted[i]!) <= soft) ? run + 1 : 0;
        if (run === dash) return { x: left + x, y: top + y };
      }
    }
    return null;
  }, { name: `--${color}`, soft: 70, dash: DASH, ...(await plotOf(test)) });
}

/** Writes a log in which two segments of 40 MiB are cached and cannot be joined when 80 MiB are requested. */
function writeLog(file: string): void {
  const lines: object[] = [{ kind: 'header', schema: 'gpumemtrace.events/1', start_unix_ns: 1, argv: ['train.py'], devices: [{ index: 0, name: 'GPU', total_bytes: 2 ** 34 }] }];
  const at = (event: object): void => void lines.push({ ...event, t_ns: lines.length * 1000, device: 0, thread: 11 });
  const segment = (address: number, size: number): void => {
    at({ kind: 'alloc', heap: 'driver', memory: 'device', address, size, api: 'cudaMalloc' });
    at({ kind: 'alloc', heap: 'pytorch', memory: 'block', address, size });
  };
  segment(1 * 2 ** 30, 40 * MIB);
  segment(2 * 2 ** 30, 40 * MIB);
  for (const address of [2 ** 30, 2 ** 31]) at({ kind: 'free', heap: 'pytorch', memory: 'block', address });
  segment(3 * 2 ** 30, 80 * MIB);
  writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
}
