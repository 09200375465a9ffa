// Tests that every key of the registry does what its title says. The registry lists the commands;
// one without an expectation here fails.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VIEWS } from '../src/app/views';
import { domainOf } from '../src/state/navigator';
import type { State, ViewName } from '../src/state/state';
import { recordedUrl, launch, noBrowser, TestPage } from './page';

interface Expectation {
  /** Keys that make the command applicable. */
  readonly prepare?: readonly string[];
  readonly done: (before: State, after: State, test: TestPage) => boolean | Promise<boolean>;
  /** Keys that undo the command. */
  readonly restore?: readonly string[];
}

const span = (state: State): number => state.range.to - state.range.from;
const cursor = (state: State): number => state.cursor ?? state.meta!.files[state.file]!.lanes[state.lane]!.peak_event;
const selected = (state: State): number => (state.selection.kind === 'block' ? state.selection.row : -1);
const low = (state: State): number => state.band?.low ?? 0;
const height = (state: State): number => (state.band === null ? Infinity : state.band.high - state.band.low);
const hasDialog = async (_before: State, _after: State, test: TestPage): Promise<boolean> => (await test.page.locator('dialog[open]').count()) === 1;

const isCopied = async (_before: State, _after: State, test: TestPage): Promise<boolean> =>
  (await test.page.locator('#announcements').textContent())?.startsWith('Copied') ?? false;
/** Nothing selected or filtered, then the top block at the peak, which does not live long. */
const ofBlock = { prepare: ['Escape', 'Escape', '0', 'P', 'J'], restore: ['Escape', 'Escape'] };

const EXPECTED: Readonly<Record<string, Expectation>> = {
  ...Object.fromEntries(
    (Object.keys(VIEWS) as ViewName[]).map((view) => [`view.${view}`, { done: (_: State, after: State) => after.view === view }]),
  ),
  'window.zoom_in': { done: (before, after) => span(after) < span(before) },
  'window.zoom_out': { prepare: ['W', 'W', 'W'], done: (before, after) => span(after) > span(before) },
  'window.left': { prepare: ['W', 'W', 'D'], done: (before, after) => after.range.from < before.range.from },
  'window.right': { prepare: ['W', 'W', 'A'], done: (before, after) => after.range.from > before.range.from },
  'window.first': { prepare: ['W', 'W'], done: (_, after) => after.range.from === 0 },
  'window.last': { prepare: ['W', 'W'], done: (_, after) => after.range.to === domainOf(after.meta!.files[0]!, after.axis).to },
  'window.fit': { prepare: ['W', 'W'], done: (before, after) => span(after) > span(before) && after.range.from === 0 },
  'window.axis': { done: (before, after) => after.axis !== before.axis, restore: ['x', 'x'] },
  'cursor.next': { prepare: ['P'], done: (before, after) => cursor(after) === cursor(before) + 1 },
  'cursor.previous': { prepare: ['P'], done: (before, after) => cursor(after) === cursor(before) - 1 },
  'cursor.peak': { prepare: [','], done: (_, after) => after.cursor === after.meta!.files[0]!.lanes[0]!.peak_event },
  'cursor.note': { done: (before, after) => after.selection.kind === 'instant' && after.selection.event === cursor(before), restore: ['Escape'] },
  'cursor.next_moment': { done: (_, after) => after.selection.kind === 'instant' && after.selection.event === after.cursor, restore: ['Escape'] },
  'cursor.base': { prepare: ['P'], done: (before, after) => after.base === cursor(before), restore: ['Shift+B'] },
  'cursor.no_base': { prepare: ['B'], done: (_, after) => after.base === null },
  'selection.clear': { prepare: ['N'], done: (before, after) => before.selection.kind !== 'none' && after.selection.kind === 'none' },
  'selection.focus': { done: () => true }, // needs a range: see pointer_test.ts
  'filter.text': {
    done: (_before, _after, test) => test.page.evaluate(() => document.activeElement instanceof HTMLInputElement),
    restore: ['Escape'],
  },
  'filter.autograd': { done: (_, after) => after.filter.text === 'saved for backward', restore: ['Escape'] },
  'page.palette': { done: hasDialog, restore: ['Escape'] },
  'page.help': { done: hasDialog, restore: ['Escape'] },
  'page.theme': { done: (before, after) => after.theme !== before.theme, restore: ['T', 'T'] },
  'page.lane': { done: (before, after) => after.lane !== before.lane, restore: ['H'] },
  'timeline.layout': { done: (before, after) => after.layout !== before.layout, restore: ['L'] },
  'timeline.color': { done: (before, after) => after.colorBy !== before.colorBy, restore: ['C', 'C', 'C', 'C', 'C', 'C', 'C'] },
  'timeline.up': { prepare: ['Escape', 'P'], done: (_, after) => after.selection.kind === 'block', restore: ['Escape'] },
  'timeline.down': { prepare: ['P', 'K', 'K', 'K'], done: (before, after) => selected(after) !== selected(before), restore: ['Escape'] },
  'timeline.bytes_in': { done: (_, after) => after.band !== null, restore: ['G'] },
  'timeline.bytes_out': { prepare: ['Shift+W', 'Shift+W'], done: (before, after) => height(after) > height(before), restore: ['G'] },
  'timeline.higher': { prepare: ['Shift+W', 'Shift+W'], done: (before, after) => low(after) > low(before), restore: ['G'] },
  'timeline.lower': { prepare: ['Shift+W', 'Shift+W', 'PageUp'], done: (before, after) => low(after) < low(before), restore: ['G'] },
  'timeline.fit_bytes': { prepare: ['Shift+W'], done: (before, after) => before.band !== null && after.band === null },
  'timeline.table': { done: async (_before, _after, test) => (await test.page.locator('main table').count()) > 0, restore: ['Shift+T'] },
  'timeline.select': { done: (_, after) => after.selection.kind === 'range' && after.breakdown.open, restore: ['Escape', 'Q'] },
  'timeline.range_a': { done: (_, after) => after.rangeA !== null && after.breakdown.of === 'ranges' && after.breakdown.open, restore: ['Shift+X', 'Escape', 'Q'] },
  'timeline.swap_ranges': { prepare: ['W', 'Shift+C', '0'], done: (before, after) => after.rangeA!.from < before.rangeA!.from && after.selection.kind === 'range', restore: ['Escape', 'Q'] },
  'timeline.no_range_a': { done: () => true }, // has no key: see breakdown_test.ts
  'timeline.breakdown': { done: (before, after) => after.breakdown.open !== before.breakdown.open, restore: ['Q'] },
  'details.copy': { ...ofBlock, done: isCopied },
  'details.copy_markdown': { ...ofBlock, done: isCopied },
  'details.stack': { ...ofBlock, done: (before, after) => before.filter.stack === null && after.filter.stack !== null },
  'details.life': { ...ofBlock, done: (before, after) => after.range.from !== before.range.from || after.range.to !== before.range.to },
  'flame.invert': { done: (before, after) => after.flame.inverted !== before.flame.inverted, restore: ['I'] },
  'flame.root': { done: (before, after) => after.flame.icicle !== before.flame.icicle, restore: ['O'] },
  'flame.fold': { done: (before, after) => after.flame.folded !== before.flame.folded, restore: ['J'] },
  'flame.category': { done: (before, after) => after.flame.byCategory !== before.flame.byCategory, restore: ['C'] },
  'flame.whole': {
    prepare: ['[tree]', 'ArrowDown', 'Enter'],
    done: (before, after) => before.flame.focus !== 0 && after.flame.focus === 0,
  },
  'table.by': { done: (before, after) => after.table.by !== before.table.by },
  'table.sort': { done: (before, after) => after.table.sort !== before.table.sort },
  'table.reverse': { done: (before, after) => after.table.descending !== before.table.descending },
  'segments.list': { done: (before, after) => after.list.open !== before.list.open, restore: ['Q'] },
  'segments.previous_step': { prepare: ['P'], done: (before, after) => cursor(after) < cursor(before) },
  // From the last step, so that it soon reaches the end and stops.
  'segments.play': { prepare: ['P', ...Array<string>(16).fill(']')], done: (before, after) => cursor(after) > cursor(before) },
  'segments.next_step': { prepare: ['P', '[', '[', '['], done: (before, after) => cursor(after) > cursor(before) },
};

/** Returns the name of a key in playwright. Letters of hotkeys are positions on the keyboard. */
function keyOf(hotkey: string): string {
  const parts = hotkey.length === 1 ? [hotkey] : hotkey.split('+');
  return parts.map((part) => (part.length === 1 && /[A-Z]/.test(part) ? `Key${part}` : part === 'Ctrl' ? 'Control' : part)).join('+');
}

async function pressAll(test: TestPage, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    if (key === '[tree]') await test.page.getByRole('tree').focus();
    else await test.press(keyOf(key === 'x' ? 'X' : key));
  }
}

/** Presses the keys of all current commands. Returns the failures as text. */
async function tryAll(test: TestPage, view: string, isTried: (id: string) => boolean): Promise<string[]> {
  const failed: string[] = [];
  for (const { id, hotkeys } of await test.commands()) {
    const expectation = EXPECTED[id];
    if (expectation === undefined) {
      failed.push(`${id} has no expectation`);
      continue;
    }
    if (!isTried(id)) continue;
    for (const hotkey of hotkeys) {
      await test.page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
      await pressAll(test, expectation.prepare ?? []);
      const before = await test.state();
      await test.press(keyOf(hotkey));
      if (!(await expectation.done(before, await test.state(), test))) failed.push(`${id}: ${hotkey}`);
      await pressAll(test, expectation.restore ?? []);
      if (id.startsWith('view.')) await test.page.goto(`${recordedUrl()}#v=1&view=${view}`);
      await test.idle();
    }
  }
  return failed;
}

describe.skipIf(noBrowser !== '')('keys', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  // The commands of the page are the same in every view; they are tried in the first one only.
  it.each(Object.keys(VIEWS).map((view, i) => [view, i === 0] as const))('%s: each key does what its title says', async (view, isFirst) => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=${view}` });
    expect(await tryAll(test, view, (id) => isFirst || id.startsWith(`${view}.`))).toEqual([]);
    expect(test.errors).toEqual([]);
    await test.close();
  });

  it('a selected block: each key does what its title says', async () => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline` });
    await test.page.context().grantPermissions(['clipboard-write', 'clipboard-read']);
    await pressAll(test, ofBlock.prepare);
    expect((await test.commands()).some(({ id }) => id.startsWith('details.'))).toBe(true);
    expect(await tryAll(test, 'timeline', (id) => id.startsWith('details.'))).toEqual([]);
    expect(test.errors).toEqual([]);
    await test.close();
  });

  it('work after a click on a check box or a slider', async () => {
    const test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=flame` });
    await test.page.getByLabel('Inverted: callees first').click();
    await test.press('KeyO');
    expect((await test.state()).flame).toMatchObject({ inverted: true, icicle: false });
    await test.press('Digit5');
    expect((await test.state()).view).toBe('segments');
    await test.page.locator('input[type=range]').click();
    await test.press('Digit4');
    expect((await test.state()).view).toBe('table');
    await test.close();
  });

  it('are all listed in help', async () => {
    const test = await TestPage.open(browser, { url: recordedUrl() });
    const commands = await test.commands();
    await test.press('?');
    const help = await test.page.locator('dialog[open]').textContent();
    expect(commands.filter((command) => command.hotkeys.length > 0 && help?.includes(command.title) !== true)).toEqual([]);
    await test.close();
  });
});
