// The measurements of the page's benchmarks, taken in the page itself: frames while it moves, and
// the time from a click to a stack. Every wait has a limit.

import { readFileSync } from 'node:fs';
import type { TestPage } from './page';

const STACK = '.drawer .stack li, .drawer .stack p'; // its frames, or the text that it has none
const LONGEST_CLICK_MS = 3000;
const MAX_ZOOMS = 30;
const ZOOM = ['KeyW', 'KeyW', 'KeyW'] as const;
const HEIGHTS = [0.85, 0.7, 0.55];

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** Returns the durations of frames while keys zoom in and out and pan, one key per frame. */
export function frames(test: TestPage, count: number): Promise<number[]> {
  return test.page.evaluate(async (frameCount) => {
    const keys = ['KeyW', 'KeyW', 'KeyW', 'KeyD', 'KeyD', 'KeyS', 'KeyA', 'KeyS', 'KeyS', 'KeyA'];
    const durations: number[] = [];
    let last = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
    for (let i = 0; i < frameCount; i++) {
      const code = keys[Math.floor(i / 4) % keys.length]!;
      window.dispatchEvent(new KeyboardEvent('keydown', { code, key: code.slice(3).toLowerCase(), bubbles: true, cancelable: true }));
      const now = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
      durations.push(now - last);
      last = now;
    }
    return durations;
  }, count);
}

type ClickedWindow = Window & { gmtClicked?: Promise<number | null> };

/**
 * Returns the time from a press at a point of the page until the frame that shows a stack, or null
 * if there is no block.
 */
async function click(test: TestPage, x: number, y: number): Promise<number | null> {
  await test.press('Escape');
  // Listens before the pointer event is sent, because the two reach the page in different ways.
  await test.page.evaluate(
    ([stack, longest]) => {
      (window as ClickedWindow).gmtClicked = new Promise((resolve) => {
        const listening = { once: true, capture: true };
        window.addEventListener('pointerdown', () => {
          const begin = performance.now();
          let isUp = false;
          window.addEventListener('pointerup', () => { isUp = true; }, listening);
          const look = (): void => {
            const spent = performance.now() - begin;
            const isHit = !isUp || window.gmtTest!.state().selection.kind === 'block';
            if (document.querySelector(stack) !== null) resolve(spent);
            else if (!isHit || spent > longest) resolve(null);
            else requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        }, listening);
      });
    },
    [STACK, LONGEST_CLICK_MS] as const,
  );
  await test.page.mouse.click(x, y);
  return test.page.evaluate((longest) => Promise.race([
    (window as ClickedWindow).gmtClicked!,
    new Promise<null>((resolve) => setTimeout(resolve, longest, null)),
  ]), 2 * LONGEST_CLICK_MS);
}

async function zoomBytes(test: TestPage, x: number, y: number): Promise<void> {
  await test.page.keyboard.down('Alt');
  await test.page.mouse.move(x, y);
  await test.page.mouse.wheel(0, -400);
  await test.page.keyboard.up('Alt');
  await test.idle();
}

/**
 * Returns the times of the first `wanted` clicks that hit a block, at points spread over the plot.
 * If there are too few, zooms in, in time and bytes, and continues: a large recording as a whole
 * shows only sums.
 */
export async function clicks(test: TestPage, wanted: number): Promise<number[]> {
  const times: number[] = [];
  const plot = await test.page.locator('main canvas').first().boundingBox();
  if (plot === null) return times;
  for (let zoom = 0; zoom < MAX_ZOOMS && times.length < wanted; ++zoom) {
    for (const [i, height] of HEIGHTS.entries()) {
      for (const x of [0.2, 0.4, 0.6, 0.8]) {
        const time = times.length < wanted ? await click(test, plot.x + plot.width * (x + 0.05 * i), plot.y + plot.height * height) : null;
        if (time !== null) times.push(time);
      }
    }
    await test.press('Escape', ...ZOOM);
    await zoomBytes(test, plot.x + plot.width / 2, plot.y + plot.height * 0.7);
  }
  return times;
}

export function residentBytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? NaN) * 1024;
}
