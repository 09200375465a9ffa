// Tests every view over two recordings: its content, that its controls work by mouse and by
// keys, that there are no errors in the console and no requests to other origins.

import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hueOfCategory, SHADES } from '../src/render/palette';
import { recordedUrl, launch, noBrowser, TestPage } from './page';

describe.skipIf(noBrowser !== '')('views', () => {
  let browser: Browser;
  let test: TestPage;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    test = await TestPage.open(browser, { url: `${recordedUrl()}#v=1&view=timeline` });
  });
  afterEach(async () => {
    expect(test.errors).toEqual([]);
    expect(test.strayRequests).toEqual([]);
    await test.close();
  });

  it('timeline: explains its hatching', async () => {
    const legend = test.page.getByRole('group', { name: 'Legend' });
    expect(await legend.textContent()).not.toContain('free');
    await test.press('L');
    const hatched = await legend.locator('.swatch-entry:has(.hatched)').allTextContents();
    expect(hatched.map((words) => words.trim())).toEqual(['free, or too small to draw', 'waiting for a stream']);
  });

  it('flame graph: navigates, zooms and searches by keys', async () => {
    await test.show('Flame graph');
    expect(await test.snapshot()).toMatch(/treeitem "all: .* blocks" \[expanded\]/);
    await test.page.getByRole('tree').focus();
    await test.press('ArrowDown');
    const child = await test.page.locator('output').textContent();
    expect(child).toMatch(/%/);
    await test.press('Enter');
    const { flame } = await test.state();
    expect(flame.focus).not.toBe(0);
    await test.press('Backspace');
    expect((await test.state()).flame.focus).toBe(0);
    await test.page.getByLabel('Find frames').fill('forward');
    await test.idle();
    expect(await test.snapshot()).toMatch(/frames match|frame matches/);
  });

  it('flame graph: shows the same picture from its link', async () => {
    await test.show('Flame graph');
    await test.page.getByRole('tree').focus();
    await test.press('ArrowDown', 'Enter');
    await test.page.getByLabel('Inverted: callees first').check();
    await test.idle();
    const url = test.page.url();
    const first = await test.page.locator('.flame canvas').screenshot();
    const again = await TestPage.open(browser, { url });
    expect((await again.state()).flame.inverted).toBe(true);
    expect((await again.page.locator('.flame canvas').screenshot()).equals(first)).toBe(true);
    await again.close();
  });

  it('flame graph: filters by a frame', async () => {
    await test.show('Flame graph');
    await test.page.getByRole('tree').focus();
    await test.press('ArrowDown');
    await test.page.getByRole('button', { name: 'Only blocks through this frame' }).click();
    await test.idle();
    expect((await test.state()).filter.text).not.toBe('');
  });

  it('table: histories have the peak of their row, which may lie between their moments', async () => {
    await test.show('Table');
    expect(await test.page.getByRole('columnheader', { name: 'History' }).getAttribute('title')).toContain('at 48 moments');
    const rows = test.page.locator('.grid-body .grid-row');
    for (const row of (await rows.all()).slice(0, 10)) {
      const peak = await row.getByRole('gridcell').nth(4).textContent();
      expect(await row.locator('.sparkline').getAttribute('aria-label')).toMatch(new RegExp(`^peak ${peak!}, `));
    }
  });

  it('table: sorts, groups, opens a row and filters by it', async () => {
    await test.show('Table');
    const grid = test.page.getByRole('grid');
    expect(Number(await grid.getAttribute('aria-rowcount'))).toBeGreaterThan(2);
    await test.page.getByRole('button', { name: /^Blocks/ }).click();
    await test.idle();
    expect((await test.state()).table.sort).toBe('blocks');
    await grid.focus();
    await test.press('ArrowDown', 'Enter');
    const { selection } = await test.state();
    expect(selection.kind).toBe('stack');
    await test.page.getByRole('button', { name: "Only the selected row's blocks" }).click();
    await test.idle();
    expect((await test.state()).filter.stack).not.toBeNull();
    expect(Number(await grid.getAttribute('aria-rowcount'))).toBe(2);
  });

  it('table: filters by the category of a row, not by one of its stacks', async () => {
    await test.show('Table');
    await test.page.getByLabel('One row per').selectOption('category');
    await test.idle();
    const row = test.page.getByRole('row', { name: /^activations/ });
    const bytes = await row.getByRole('gridcell').nth(1).textContent();
    await row.click();
    await test.idle();
    expect(await test.page.getByRole('row', { selected: true }).count()).toBe(1);
    await test.page.getByRole('button', { name: "Only the selected row's blocks" }).click();
    await test.idle();
    expect((await test.state()).filter).toMatchObject({ category: 'activations', stack: null });
    expect(await test.page.getByRole('grid').getAttribute('aria-rowcount')).toBe('2');
    expect(await row.getByRole('gridcell').nth(1).textContent()).toBe(bytes);
    expect(await row.getAttribute('aria-selected')).toBe('true');
  });

  it('table: filters by the function of a row, with all of its call sites', async () => {
    await test.show('Table');
    await test.page.getByLabel('One row per').selectOption('function');
    await test.idle();
    const row = test.page.getByRole('row', { name: /^forward/ });
    const bytes = await row.getByRole('gridcell').nth(1).textContent();
    await row.click();
    await test.page.getByRole('button', { name: "Only blocks through the selected row's function" }).click();
    await test.idle();
    expect((await test.state()).filter).toMatchObject({ text: 'forward (model.py)', stack: null });
    expect(await row.getByRole('gridcell').nth(1).textContent()).toBe(bytes);
    // In another grouping no row is selected, but the row's stack is.
    await test.page.getByLabel('One row per').selectOption('size');
    await test.idle();
    expect(await test.page.getByRole('button', { name: /^Only (the selected|blocks through)/ }).count()).toBe(0);
  });

  it('table: goes to the last of all blocks and keeps few rows in the page', async () => {
    await test.show('Table');
    await test.page.getByLabel('One row per').selectOption('block');
    await test.idle();
    const grid = test.page.getByRole('grid');
    await grid.focus();
    await test.press('End');
    const count = Number(await grid.getAttribute('aria-rowcount'));
    const last = test.page.locator(`[role=row][aria-rowindex="${count}"]`);
    expect(await last.locator('[role=gridcell]').first().textContent()).not.toBe('…');
    expect(await test.page.locator('[role=row]').count()).toBeLessThan(60);
  });

  it('timeline: an address fades all blocks except its own', async () => {
    const picture = async (text: string): Promise<string> => {
      await test.page.getByLabel('Filter by frame').fill(text);
      await test.idle();
      return test.page.evaluate(() => document.querySelector<HTMLCanvasElement>('.plot canvas')!.toDataURL());
    };
    await test.press('P', 'K');
    const facts = await test.page.locator('.drawer').textContent();
    const address = /0x[0-9a-f]{12}/.exec(facts!)![0];
    const [none, one, all] = [await picture('0xdead'), await picture(address), await picture('0x7')];
    expect(one).not.toBe(none);
    expect(one).not.toBe(all);
    expect(await picture('/0x7/')).toBe(all);
  });

  it('timeline: shows the matching memory as a curve, and as a number at the cursor', async () => {
    const accented = (): Promise<number> =>
      test.page.evaluate(() => {
        const canvas = document.querySelector<HTMLCanvasElement>('.plot canvas')!;
        const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] === 0x00 && data[i + 1] === 0x63 && data[i + 2] === 0xb1) ++count; // --accent
        return count;
      });
    const before = await accented();
    await test.page.getByRole('button', { name: 'Fields' }).click();
    await test.page.getByLabel('At most').fill('1 MiB'); // all of these blocks are drawn as sums
    await test.press('Enter');
    expect(await accented()).toBeGreaterThan(before + 100);
    const entry = test.page.locator('.filter-entry');
    const words = /filter: ([\d.]+ \w+) at the peak/.exec((await entry.textContent())!)![1];
    await test.page.getByRole('button', { name: 'As a table' }).click();
    await test.idle();
    expect(await test.page.locator('.shown-table caption').textContent()).toContain(`Filter: ${words} at the peak.`);
    const plot = (await test.page.locator('.plot').boundingBox())!;
    await test.page.mouse.move(plot.x + plot.width * 0.7, plot.y + plot.height * 0.7);
    await test.idle();
    expect(await test.page.locator('.tooltip').textContent()).toMatch(/filter: [\d.]+ \w+ here/);
    await test.show('Table');
    expect(/rows?: ([\d.]+ \w+) in/.exec(await test.snapshot())?.[1]).toBe(words);
    // In the layout by address, a sum of bytes has no position.
    await test.show('Timeline');
    await test.press('L');
    expect(await accented()).toBeLessThan(before + 100);
    expect(await entry.textContent()).toContain(`filter: ${words} at the peak`);
    await test.page.getByRole('button', { name: 'Clear filter' }).click();
    expect(await entry.count()).toBe(0);
  });

  it('segments: goes to events, steps and blocks', async () => {
    await test.show('Segments');
    const words = test.page.locator('.event-words');
    const atPeak = await words.textContent();
    await test.page.getByRole('button', { name: 'Previous event' }).click();
    await test.idle();
    expect(await words.textContent()).not.toBe(atPeak);
    await test.press('.');
    expect(await words.textContent()).toBe(atPeak);
    await test.page.getByLabel('Step', { exact: true }).fill('3');
    await test.press('Enter');
    const { cursor, meta } = await test.state();
    expect(cursor).toBe(meta!.files[0]!.steps.begin[2]! + 1);
    await test.page.getByRole('tree').focus();
    await test.press('Home', 'ArrowRight');
    expect(await test.snapshot('.segments-view')).toMatch(/treeitem "(Block|Hole|Freed block)[^"]*" \[level=3\] \[selected\]|treeitem "(Block|Hole)/);
  });

  it('filter: a size is shown as long as it is set, and can be set again', async () => {
    await test.page.getByRole('button', { name: 'Fields' }).click();
    const field = test.page.getByLabel('At least');
    for (let i = 0; i < 2; ++i) {
      await field.fill('64 KiB');
      await field.press('Enter');
      await test.idle();
      expect((await test.state()).filter.min_size).toBe(65536);
      await test.page.getByRole('button', { name: 'Remove the filter at least' }).click();
      await test.idle();
      expect([(await test.state()).filter.min_size, await field.inputValue()]).toEqual([null, '']);
    }
    await field.fill('much');
    await field.press('Enter');
    await test.idle();
    expect([await field.getAttribute('aria-invalid'), await field.inputValue()]).toEqual(['true', 'much']);
    await field.fill('');
    await field.press('Enter');
    await test.page.getByRole('button', { name: 'Fields' }).click();
  });

  it('compare: draws both and leads to the other recording', async () => {
    await test.show('Compare');
    expect(await test.snapshot()).toMatch(/img "Live memory of both: .* peaks at /);
    await test.page.getByRole('button', { name: 'Flame graph of the difference' }).click();
    await test.idle();
    const { view, flame } = await test.state();
    expect([view, flame.compare]).toEqual(['flame', true]);
  });

  it('flame graph: a difference to another file is only of held memory', async () => {
    await test.show('Flame graph');
    const difference = test.page.getByLabel('Difference to the other file');
    await difference.check();
    await test.idle();
    expect(await test.snapshot()).toMatch(/"all: [+-]?[\d.]+ \w+, from /);
    await test.page.locator('.scope-bar select').selectOption('born');
    await test.idle();
    expect([await difference.isDisabled(), await difference.isChecked()]).toEqual([true, false]);
    expect(await test.snapshot()).toMatch(/"all: [\d.]+ \w+, \d+ blocks/);
    expect(await test.page.locator('main').textContent()).toContain('Only memory held at the cursor can be compared');
    await test.page.locator('.scope-bar select').selectOption('live');
    await test.idle();
    expect(await difference.isChecked()).toBe(true);
  });

  it.each(['Leaks', 'Out of memory', 'Ledger', 'Fragmentation'])('%s: has a headline and the printed text', async (title) => {
    await test.show(title);
    expect(await test.page.locator('.answer h2').textContent()).not.toBe('');
    await test.page.getByText('As the program prints it').click();
    expect(await test.page.locator('.answer pre').isVisible()).toBe(true);
  });

  it('timeline: a note on a moment is drawn, found, and part of the address', async () => {
    await test.press('P', 'Shift+N');
    const { cursor } = await test.state();
    const field = test.page.getByLabel('Note');
    await field.fill('here it grows');
    await field.press('Enter');
    await test.idle();
    expect((await test.state()).notes).toMatchObject([{ file: 0, event: cursor, text: 'here it grows' }]);
    const again = await TestPage.open(browser, { url: test.page.url() });
    expect((await again.state()).notes).toEqual((await test.state()).notes);
    await again.press('Control+Shift+P');
    await again.page.keyboard.type('it grows');
    await again.idle();
    await again.press('Enter');
    expect((await again.state()).selection).toEqual({ kind: 'instant', event: cursor });
    await again.close();
    await field.fill('');
    await field.press('Enter');
    await test.idle();
    expect((await test.state()).notes).toEqual([]);
    expect(test.page.url()).not.toContain('notes=');
  });

  it('timeline: a text that no frame has fades everything, also memory of backward passes', async () => {
    const gradients = (): Promise<number> =>
      test.page.evaluate((color) => {
        const canvas = document.querySelector<HTMLCanvasElement>('.plot canvas')!;
        const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i] === color[0] && data[i + 1] === color[1] && data[i + 2] === color[2]) ++count;
        return count;
      }, [1, 3, 5].map((at) => parseInt(SHADES.light[hueOfCategory('gradients')].slice(at, at + 2), 16)));
    expect(await gradients()).toBeGreaterThan(1000);
    await test.page.getByRole('searchbox').first().fill('no_such_frame');
    await test.idle();
    expect(await gradients()).toBe(0);
  });

  it('answers: say that they are about the whole recording, and clear the filter', async () => {
    await test.show('Leaks');
    expect(await test.page.getByRole('note').count()).toBe(0);
    await test.page.getByLabel('Filter by frame').fill('forward');
    await test.idle();
    const note = test.page.getByRole('note');
    expect(await note.textContent()).toContain('about the whole recording');
    await note.getByRole('button').click();
    await test.idle();
    expect((await test.state()).filter.text).toBe('');
    expect(await note.count()).toBe(0);
  });

  it('segments: fades what does not match the filter', async () => {
    await test.show('Segments');
    const picture = (): Promise<string> => test.page.evaluate(() => document.querySelector<HTMLCanvasElement>('.segments canvas')!.toDataURL());
    const filter = async (text: string): Promise<string> => {
      await test.page.getByLabel('Filter by frame').fill(text);
      await test.idle();
      return picture();
    };
    const all = await picture();
    const [some, none] = [await filter('forward'), await filter('no_such_frame')];
    expect(new Set([all, some, none]).size).toBe(3);
    expect(await filter('empty_cuda')).toBe(all);
    expect(await filter('')).toBe(all);
  });

  it('segments: plays through the range, and stops at its end', async () => {
    await test.show('Segments');
    const { events } = (await test.state()).meta!.files[0]!;
    await test.page.getByLabel('Event', { exact: true }).last().fill(String(events - 40));
    await test.press('Enter');
    const play = test.page.getByRole('button', { name: 'Play' });
    await play.click();
    await test.page.waitForFunction((last) => window.gmtTest!.state().cursor === last, events);
    await play.waitFor(); // it has stopped
    expect(await play.getAttribute('aria-pressed')).toBe('false');
    // From the beginning, for a frame or two. The page pauses itself, because a test would be too
    // late to do it.
    await test.page.evaluate(async () => {
      const press = (name: string): boolean => {
        const button = Array.from(document.querySelectorAll('button')).find((each) => each.textContent.trim() === name);
        button?.click();
        return button !== undefined;
      };
      press('Play');
      while (!press('Pause')) await new Promise(requestAnimationFrame);
    });
    await play.waitFor();
    await test.idle();
    const { cursor } = await test.state();
    expect(cursor).toBeLessThan(events - 40);
    await test.page.evaluate(async () => {
      for (let frame = 0; frame < 12; ++frame) await new Promise(requestAnimationFrame);
    });
    expect((await test.state()).cursor).toBe(cursor);
  });

  it('a dropped file: does not replace the page, which says how to open it', async () => {
    const address = test.page.url();
    const drop = (...names: readonly string[]): Promise<boolean> =>
      test.page.evaluate((given) => {
        const dataTransfer = new DataTransfer();
        for (const name of given) dataTransfer.items.add(new File(['GMT'], name));
        return ['dragenter', 'dragover', 'drop'].every((type) => {
          const event = new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true });
          document.querySelector('main')!.dispatchEvent(event);
          return event.defaultPrevented; // otherwise the browser would open the file
        });
      }, names);
    expect(await drop('other run.gmt')).toBe(true);
    const dialog = test.page.getByRole('dialog', { name: 'To open other run.gmt' });
    expect(await dialog.textContent()).toContain("gpumemtrace view 'other run.gmt'");
    await dialog.getByRole('button', { name: 'Close' }).click();
    expect(await test.page.getByRole('dialog').count()).toBe(0);
    await drop('a.gmt', 'page.html');
    expect(await test.page.getByRole('dialog').textContent()).toContain('in a browser tab');
    await test.press('Escape');
    expect(test.page.url()).toBe(address);
    // Text that is dragged is not handled.
    expect(await test.page.evaluate(() => {
      const event = new DragEvent('dragover', { dataTransfer: new DataTransfer(), bubbles: true, cancelable: true });
      document.body.dispatchEvent(event);
      return event.defaultPrevented;
    })).toBe(false);
  });
});
