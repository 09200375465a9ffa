// Seeded random use: keys, clicks, wheel and drags all over the page for GMT_MONKEY_SECONDS (60).
// There must be no error, no request to another origin, and no growing heap. If there is a program
// (GMT_PROGRAM), half of the time is spent on `gpumemtrace view`.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../src/testing/random';
import { seedsOfSuite } from '../src/testing/seeds';
import { recordedUrl, launch, noBrowser, TestPage } from './page';
import { ViewProgram, noPage, writeCases } from './program';
import { writeRandomLog } from './random_log';

const SECONDS = Number(process.env['GMT_MONKEY_SECONDS'] ?? 60);
const WARM_UP = 0.3; // of the time, while pages, tiles and code are still being loaded
const MAX_GROWTH = 10 * 2 ** 20; // bytes, from the minimum heap of the first third after the warm-up to that of the last third
const VIEW = 'gpumemtrace view';
const WIDTH = 1280;
const HEIGHT = 800;

const KEYS = [
  'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End', 'PageUp', 'PageDown', 'Enter', 'Escape', 'Tab', 'Shift+Tab', ' ', 'Backspace',
  '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '-', ',', '.', '[', ']', '/', '?', 'Control+Shift+P', 'Shift+B',
];
const LETTERS = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ', (letter) => `Key${letter}`);

/** The modifier held meanwhile, which changes the meaning of drags and wheels. */
const HELD = [null, null, null, 'Shift', 'Control'] as const;

async function act(test: TestPage, random: Random): Promise<string> {
  const held = random.pick(HELD);
  if (held === null) return actFreely(test, random);
  await test.page.keyboard.down(held);
  const done = await actFreely(test, random);
  await test.page.keyboard.up(held);
  return `${held} + ${done}`;
}

async function actFreely(test: TestPage, random: Random): Promise<string> {
  const { mouse, keyboard } = test.page;
  const [x, y] = [random.below(WIDTH), random.below(HEIGHT)];
  switch (random.below(8)) {
    case 0:
    case 1: {
      const key = random.pick(LETTERS);
      await keyboard.press(key);
      return key;
    }
    case 2:
    case 3: {
      const key = random.pick(KEYS);
      await keyboard.press(key);
      return key;
    }
    case 4:
      await mouse.move(x, y);
      await mouse.wheel(random.below(400) - 200, random.below(2000) - 1000);
      return `wheel at ${x},${y}`;
    case 5:
      await mouse.move(x, y);
      await mouse.down();
      await mouse.move(random.below(WIDTH), random.below(HEIGHT), { steps: 4 });
      await mouse.up();
      return `drag from ${x},${y}`;
    default:
      await mouse.click(x, y, { clickCount: 1 + random.below(2) });
      return `click at ${x},${y}`;
  }
}

/**
 * What is used at random, and for which share of the time. Without a program the recordings of
 * the tests get all of it.
 */
const hasProgram = noPage('view') === '' && process.env['GMT_MONKEY_URL'] === undefined;
const PLACES = [
  { name: process.env['GMT_MONKEY_URL'] ?? 'the recordings of the tests', share: hasProgram ? 0.5 : 1 },
  ...(hasProgram ? [{ name: VIEW, share: 0.5 }] : []),
];

describe.skipIf(noBrowser !== '').each(seedsOfSuite([1]))('random use (GMT_TEST_SEED=%i)', (seed) => {
  let browser: Browser;
  let folder: string;
  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-monkey-'));
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  it.each(PLACES)(`of ${SECONDS} s * $share breaks nothing on $name`, async ({ name, share }) => {
    const random = new Random(seed);
    const view = name === VIEW ? await openView(folder, seed) : null;
    const test = await TestPage.open(browser, { url: view?.url ?? process.env['GMT_MONKEY_URL'] ?? recordedUrl(), width: WIDTH, height: HEIGHT });
    if (view !== null) await test.untilReady();
    await useAtRandom(test, random, SECONDS * 1000 * share);
    await test.close();
    await view?.close();
  }, SECONDS * 1000 + 120_000);
});

/** Starts `gpumemtrace view` on two recordings: a busy one, and one with a leak. */
async function openView(folder: string, seed: number): Promise<ViewProgram> {
  writeCases(folder);
  writeRandomLog(path.join(folder, 'random.jsonl'), new Random(seed), 12_000);
  return ViewProgram.open(folder, 'random.jsonl', 'leak.jsonl');
}

async function useAtRandom(test: TestPage, random: Random, ms: number): Promise<void> {
  const begin = Date.now();
  const last: string[] = [];
  const heaps: number[] = [];
  let actions = 0;
  while (Date.now() - begin < ms) {
    last.push(await act(test, random));
    if (last.length > 20) last.shift();
    if (++actions % 25 !== 0) continue;
    await test.idle();
    expect(test.errors, `after ${last.join('; ')}`).toEqual([]);
    expect(await test.page.getByRole('navigation').count(), `after ${last.join('; ')}`).toBe(1);
    if (Date.now() - begin > ms * WARM_UP && actions % 50 === 0) heaps.push(await heapAtRest(test));
  }
  heaps.push(await heapAtRest(test));
  console.log(`${actions} actions; heap ${heaps.map((heap) => (heap / 2 ** 20).toFixed(1)).join(', ')} MiB`);
  expect(test.strayRequests).toEqual([]);
  // Caches make single measurements fluctuate by more than the limit; a leak raises their minimum.
  const third = Math.max(1, Math.floor(heaps.length / 3));
  expect(Math.min(...heaps.slice(-third)) - Math.min(...heaps.slice(0, third))).toBeLessThan(MAX_GROWTH);
}

/**
 * Returns the heap with the same picture each time, the whole recording on the timeline, so that
 * heaps can be compared.
 */
async function heapAtRest(test: TestPage): Promise<number> {
  await test.page.evaluate(() => {
    document.querySelectorAll('dialog[open]').forEach((dialog) => (dialog as HTMLDialogElement).close());
    (document.activeElement as HTMLElement | null)?.blur();
  });
  await test.press('Escape', 'Escape', '2', '0');
  return test.heap();
}
