// `gpumemtrace view --live` in a real browser, with a program that executes commands: its
// allocations appear, the window follows until it is moved, and the ends of program and collector
// are reported.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HANG_MS, LiveViewProgram, noLive, Recorded } from './live';
import { launch, noBrowser, TestPage } from './page';
import { noPage } from './program';

const MIB = 2 ** 20;
const reason = noBrowser !== '' ? noBrowser : noPage('view') !== '' ? noPage('view') : noLive;
if (reason !== '') console.log(reason);

/** Describes the page's state, for the message of a wait that failed. */
async function situation(test: TestPage): Promise<string> {
  return test.page.evaluate(() => {
    const { meta, progress, selection, following, view } = window.gmtTest?.state() ?? {};
    const lanes = meta?.files[0]?.lanes.map((lane) => `${lane.heap} ${lane.end_bytes}`);
    const live = progress?.files[0]?.live;
    const known = { lanes, meta: meta?.files[0]?.live, state: live?.state, generation: live?.generation, selection, following, view };
    return `${location.hash} ${JSON.stringify(known)}\n${document.querySelector('main')?.innerText ?? ''}`;
  });
}

/** Waits, and names what it waited for if the wait fails. */
async function waited(test: TestPage, what: string, wait: Promise<unknown>): Promise<void> {
  try {
    await wait;
  } catch (error) {
    throw new Error(`waited for ${what}: ${String(error)}\n${await situation(test)}`, { cause: error });
  }
}

function until<Wanted>(test: TestPage, what: string, condition: (wanted: Wanted) => boolean, wanted: Wanted): Promise<void> {
  const options = { timeout: HANG_MS, polling: 10 };
  return waited(test, what, test.page.waitForFunction(condition as (wanted: unknown) => boolean, wanted, options));
}

describe.skipIf(reason !== '')('gpumemtrace view --live', () => {
  let browser: Browser;
  let folder: string;
  let program: Recorded;
  const open: (TestPage | LiveViewProgram)[] = [];
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => {
    await browser.close();
  });
  beforeEach(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'gmt-live-'));
    program = await Recorded.start(folder);
  });
  afterEach(async () => {
    for (const each of open.splice(0).reverse()) await each.close();
    await program.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function look(url?: string): Promise<{ test: TestPage; url: string }> {
    let address = url;
    if (address === undefined) {
      const view = await LiveViewProgram.open(folder, String(program.pid));
      open.push(view);
      address = view.url;
    }
    const context = await TestPage.open(browser, { url: address });
    open.push(context);
    return { test: context, url: address };
  }
  const held = (test: TestPage): Promise<number> =>
    test.page.evaluate(() => {
      const state = window.gmtTest!.state();
      return state.meta?.files[0]?.lanes[0]?.end_bytes ?? 0;
    });
  const untilHeld = (test: TestPage, bytes: number): Promise<void> =>
    until(test, `${bytes} bytes held`, (wanted) => window.gmtTest?.state().meta?.files[0]?.lanes[0]?.end_bytes === wanted, bytes);
  const untilFollowing = (test: TestPage): Promise<void> => until(test, 'following', () => window.gmtTest?.state().following === true, null);
  const untilAddress = (test: TestPage, part: string): Promise<void> =>
    until(test, `an address with ${part}`, (wanted) => location.hash.includes(wanted), part);
  const untilSelected = (test: TestPage): Promise<void> =>
    until(test, 'a selected block', () => window.gmtTest?.state().selection.kind === 'block', null);
  const untilText = (test: TestPage, text: string | RegExp): Promise<void> =>
    waited(test, String(text), test.page.getByText(text).first().waitFor({ timeout: HANG_MS }));

  it('shows nothing yet, then each allocation as it comes, and prints the latency', async () => {
    const { test } = await look();
    await untilText(test, 'Nothing allocated yet.');
    let bytes = 0;
    const late: number[] = [];
    for (let i = 1; i <= 10; ++i) {
      const done = await program.take(i * MIB);
      bytes += i * MIB;
      await untilHeld(test, bytes);
      late.push(Date.now() - done.ms);
      await test.page.waitForTimeout((i * 137) % 400); // any time between two polls of the collector
    }
    late.sort((a, b) => a - b);
    console.log(`live: an allocation is on the page after ${late[5]!.toFixed(0)} ms (median), ${late[9]!.toFixed(0)} ms maximum`);
    await untilText(test, /55\.0 MiB in 10 blocks now/);
    // It is drawn, not only known.
    await until(test, '10 blocks drawn', () => /10 blocks drawn/.test(document.querySelector('.readout')?.textContent ?? ''), null);
    expect(test.errors).toEqual([]);
    expect(test.strayRequests).toEqual([]);
  });

  it('opens with the timeline, and its overview is about what is known so far', async () => {
    const { test } = await look();
    await program.take(3 * MIB);
    await untilHeld(test, 3 * MIB);
    expect((await test.state()).view).toBe('timeline');
    expect(await test.page.locator('.badge').count()).toBe(0);
    await test.show('Overview');
    await until(test, 'the peak', () => /Peak of GPU 0: 3\.00 MiB allocated/.test(document.querySelector('main')?.textContent ?? ''), null);
    await program.take(MIB);
    await until(test, 'the next peak', () => /Peak of GPU 0: 4\.00 MiB allocated/.test(document.querySelector('main')?.textContent ?? ''), null);
    expect(test.errors).toEqual([]);
  });

  it('follows until the window is moved, and again on request', async () => {
    const { test } = await look();
    await program.take(MIB);
    await untilHeld(test, MIB);
    await untilFollowing(test);
    const end = (): Promise<readonly [number, number]> =>
      test.page.evaluate(() => {
        const { range, meta } = window.gmtTest!.state();
        return [range.to, meta!.files[0]!.end_ns] as const;
      });
    for (let i = 0; i < 4; ++i) await program.take(MIB);
    await untilHeld(test, 5 * MIB);
    const [right, newest] = await end();
    expect(right).toBe(newest);

    for (let i = 0; i < 3; ++i) await test.page.keyboard.press('w');
    await test.page.keyboard.press('a');
    expect((await test.state()).following).toBe(false);
    const stands = (await test.state()).range;
    await program.take(MIB);
    await untilHeld(test, 6 * MIB);
    expect((await test.state()).range).toEqual(stands);

    await test.page.getByRole('button', { name: 'Follow' }).click();
    expect((await test.state()).following).toBe(true);
    await program.take(MIB);
    await untilHeld(test, 7 * MIB);
    const after = await test.state();
    expect(after.range.to).toBe(after.meta!.files[0]!.end_ns);
    expect(after.range.to - after.range.from).toBeCloseTo(stands.to - stands.from, -1);
    await test.page.keyboard.press('e');
    expect((await test.state()).following).toBe(false);
    expect(test.errors).toEqual([]);
  });

  it('shows how much of what is held now matches the filter', async () => {
    const { test } = await look();
    await program.take(MIB);
    await program.take(3 * MIB);
    await untilHeld(test, 4 * MIB);
    await test.page.getByRole('button', { name: 'Fields' }).click();
    await test.page.getByLabel('At least').fill('2 MiB');
    await test.page.keyboard.press('Enter');
    await untilText(test, 'filter: 3.00 MiB now');
    for (let i = 1; i <= 2; ++i) {
      await program.take(MIB);
      await program.take(3 * MIB);
      await untilText(test, `filter: ${3 + 3 * i}.00 MiB now`);
    }
    expect(test.errors).toEqual([]);
  });

  it('keeps the selection, the filter and the cursors while generations come', async () => {
    const { test } = await look();
    await program.take(3 * MIB);
    await program.take(5 * MIB);
    await untilHeld(test, 8 * MIB);
    await test.page.evaluate(() => (location.hash = '#v=1&sel=block-0&at=1&min=1000'));
    await untilSelected(test);
    const { selection, cursor, filter } = await test.state();
    expect([cursor, filter.min_size]).toEqual([1, 1000]);
    for (let i = 0; i < 5; ++i) {
      await program.take(MIB);
      await untilHeld(test, (9 + i) * MIB);
    }
    const after = await test.state();
    expect([after.selection, after.cursor, after.filter]).toEqual([selection, cursor, filter]);
    await untilText(test, /3\.00 MiB from/);
    expect(test.errors).toEqual([]);
  });

  it('keeps a number that is being typed while generations come', async () => {
    const { test } = await look();
    await program.take(MIB);
    await untilHeld(test, MIB);
    await test.show('Segments');
    const field = test.page.getByLabel('Event', { exact: true }).and(test.page.getByRole('textbox'));
    await field.fill('1');
    for (let i = 2; i <= 4; ++i) {
      await program.take(MIB);
      await untilHeld(test, i * MIB);
    }
    expect(await field.inputValue()).toBe('1');
    await field.press('Enter');
    await until(test, 'the cursor', () => window.gmtTest?.state().cursor === 1, null);
    expect(test.errors).toEqual([]);
  });

  it('says that the server is gone, and shows nothing as current', async () => {
    const view = await LiveViewProgram.open(folder, String(program.pid));
    const test = await TestPage.open(browser, { url: view.url });
    await program.take(MIB);
    await untilText(test, /1\.00 MiB in 1 block now/);
    await view.close();
    await untilText(test, /No connection to gpumemtrace view since /);
    expect(await test.page.getByText('block now').count()).toBe(0);
    test.errors.splice(0); // the browser reports each attempt to connect again
    await test.close();
  });

  it('keeps its state when it is reloaded', async () => {
    const { test } = await look();
    for (let i = 1; i <= 4; ++i) await program.take(i * MIB);
    await untilHeld(test, 10 * MIB);
    await untilFollowing(test);
    await untilAddress(test, 'follow=1');
    await test.press('w', 'w', 'a');
    await test.page.evaluate(() => (location.hash = `${location.hash}&sel=block-1`));
    await untilSelected(test);
    const before = await test.state();
    expect(before.following).toBe(false);
    await test.page.reload();
    await untilText(test, /2\.00 MiB from/);
    const after = await test.state();
    expect([after.following, after.axis, after.range, after.selection]).toEqual([false, before.axis, before.range, before.selection]);
    await test.page.keyboard.press('e');
    await untilAddress(test, 'follow=1');
    await test.page.reload();
    await untilFollowing(test);
    expect(test.errors).toEqual([]);
  });

  it('shows the table of what is held now until the end, and keeps following after going back', async () => {
    const { test } = await look();
    const first = await program.take(2 * MIB);
    await untilHeld(test, 2 * MIB);
    await untilFollowing(test);
    await test.show('Table');
    const untilRow = (text: RegExp): Promise<void> =>
      waited(test, `a row with ${String(text)}`, test.page.getByRole('row').getByText(text).first().waitFor({ timeout: HANG_MS }));
    await untilRow(/2\.00 MiB/);
    await program.take(4 * MIB);
    await untilRow(/6\.00 MiB/);
    await test.page.goBack();
    await until(test, 'the timeline', () => window.gmtTest?.state().view === 'timeline', null);
    await untilFollowing(test);
    await test.show('Table');
    await program.give(first);
    await program.leave(0);
    await untilText(test, /Ended at/);
    await untilRow(/4\.00 MiB/);
    expect(test.errors).toEqual([]);
  });

  it('reports that the program ended, and remains usable', async () => {
    const { test } = await look();
    const first = await program.take(2 * MIB);
    await program.take(4 * MIB);
    await untilHeld(test, 6 * MIB);
    await program.give(first);
    await program.leave(3);
    await untilText(test, /Ended at .*process \d+ has ended/);
    await untilHeld(test, 4 * MIB);
    await test.show('Table');
    expect(await held(test)).toBe(4 * MIB);
    await test.show('Timeline');
    await test.press('w', 'd', '0');
    expect(test.errors).toEqual([]);
  });

  it('reports that the collector was killed, and tries again', async () => {
    const { test } = await look();
    await program.take(2 * MIB);
    await untilHeld(test, 2 * MIB);
    process.kill(program.collector(), 'SIGKILL');
    await untilText(test, /the collector of process \d+ is gone; retrying/);
    expect(await held(test)).toBe(2 * MIB);
    await test.press('w', '0');
    await program.stop();
    await untilText(test, /Ended at .*has ended after its collector did/);
    expect(test.errors).toEqual([]);
  });

  it('serves more tabs than a browser opens connections, whichever of them is closed', async () => {
    const view = await LiveViewProgram.open(folder, String(program.pid));
    open.push(view);
    const context = await browser.newContext();
    const shows = (tab: Page, text: string): Promise<void> => tab.getByText(text).first().waitFor({ timeout: HANG_MS });
    await program.take(MIB);
    const tabs: Page[] = [];
    for (let i = 0; i < 8; ++i) {
      const tab = await context.newPage();
      await tab.goto(view.url);
      await shows(tab, '1.00 MiB in 1 block now');
      tabs.push(tab);
    }
    await tabs.shift()!.close();
    await program.take(MIB);
    for (const tab of tabs) await shows(tab, '2.00 MiB in 2 blocks now');
    await context.close();
  });

  it('serves two tabs that show different things', async () => {
    const { test: one, url } = await look();
    const { test: two } = await look(url);
    await program.take(MIB);
    await Promise.all([untilHeld(one, MIB), untilHeld(two, MIB)]);
    await one.page.keyboard.press('e');
    await two.show('Table');
    await program.take(MIB);
    await Promise.all([untilHeld(one, 2 * MIB), untilHeld(two, 2 * MIB)]);
    expect((await one.state()).following).toBe(false);
    expect((await two.state()).following).toBe(true);
    await untilText(two, /2\.00 MiB in 2 blocks/);
    expect([...one.errors, ...two.errors]).toEqual([]);
  });
});
