// Tests that the address holds any state; light and dark; forced colours; back and forward.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VIEWS } from '../src/app/views';
import type { State } from '../src/state/state';
import { recordedUrl, launch, noBrowser, TestPage } from './page';

function linked(state: State): Partial<State> {
  return { ...state, meta: null, progress: null, theme: 'system' };
}

describe.skipIf(noBrowser !== '')('the page', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it.each(Object.keys(VIEWS))('%s: its address restores it', async (view) => {
    const address = `#v=1&view=${view}`;
    const first = await TestPage.open(browser, { url: `${recordedUrl()}${address}` });
    await first.press('KeyW', 'KeyW', 'KeyD', 'KeyN', 'KeyB', ',', ',');
    await first.page.getByLabel('Filter by frame').fill('forward');
    await first.idle();
    // Written shortly after the change, not with each letter.
    await first.page.waitForFunction(() => location.hash.includes('forward'));
    const state = linked(await first.state());
    const second = await TestPage.open(browser, { url: first.page.url() });
    expect(linked(await second.state())).toEqual(state);
    expect(await second.snapshot()).toBe(await first.snapshot());
    expect([...first.errors, ...second.errors]).toEqual([]);
    await first.close();
    await second.close();
  });

  it.each(['#v=1&view=nothing&file=99&lane=-4', '#v=999&range=NaN..x&sel=block-4294967294', '#%%%=&&=', '#v=1&view=flame&flame=1e999'])(
    'accepts the address %s',
    async (address) => {
      const test = await TestPage.open(browser, { url: `${recordedUrl()}${address}` });
      expect(await test.page.getByRole('navigation').isVisible()).toBe(true);
      expect(test.errors).toEqual([]);
      await test.close();
    },
  );

  it('Back undoes zooms, selections and filters one by one', async () => {
    const test = await TestPage.open(browser, { url: recordedUrl() });
    const whole = (await test.state()).range;
    const isWritten = (part: string): Promise<unknown> => test.page.waitForFunction((text) => location.hash.includes(text), part);
    await test.press('KeyW');
    const { range } = await test.state();
    await test.press('KeyN');
    await isWritten('sel=event');
    await test.page.getByLabel('Filter by frame').fill('forward');
    await isWritten('text=forward');
    const back = async (): Promise<State> => {
      const before = test.page.url();
      await test.page.goBack();
      await test.page.waitForFunction((address) => location.href !== address, before);
      await test.idle();
      return test.state();
    };
    expect((await back()).filter.text).toBe('');
    expect((await back()).selection.kind).toBe('none');
    expect((await test.state()).range).toEqual(range);
    expect((await back()).range).toEqual(whole);
    await test.page.goForward();
    await isWritten('range=');
    await test.idle();
    expect((await test.state()).range).toEqual(range);
    await test.close();
  });

  it('is light or dark as in the system, or as chosen', async () => {
    const background = (test: TestPage): Promise<string> => test.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await TestPage.open(browser, { url: recordedUrl(), colorScheme: 'light' });
    const dark = await TestPage.open(browser, { url: recordedUrl(), colorScheme: 'dark' });
    expect(await background(light)).toBe('rgb(255, 255, 255)');
    expect(await background(dark)).toBe('rgb(20, 23, 28)');
    await light.press('KeyT', 'KeyT');
    expect(await background(light)).toBe('rgb(20, 23, 28)');
    await light.close();
    await dark.close();
  });

  it('is readable with high contrast', async () => {
    const test = await TestPage.open(browser, { url: recordedUrl() });
    await test.page.emulateMedia({ forcedColors: 'active' });
    for (const { title } of Object.values(VIEWS)) {
      await test.show(title);
      expect(await test.page.locator('main').isVisible()).toBe(true);
    }
    expect(test.errors).toEqual([]);
    await test.close();
  });

  it.each(Object.values(VIEWS).map((view) => view.title))('%s: Tab goes through it and out again', async (title) => {
    const test = await TestPage.open(browser, { url: recordedUrl() });
    await test.show(title);
    await test.page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    const seen = new Set<string>();
    let isBack = false;
    for (let i = 0; i < 150 && !isBack; i++) {
      await test.page.keyboard.press('Tab');
      const at = await test.page.evaluate(() => {
        const element = document.activeElement;
        if (element === null || element === document.body) return '';
        const name = element.getAttribute('aria-label') ?? element.textContent;
        return `${element.tagName} ${element.id} ${name.slice(0, 40)}`;
      });
      isBack = at === '' || (seen.size > 3 && at === [...seen][0]);
      seen.add(at);
    }
    expect(isBack).toBe(true);
    await test.close();
  });

  it('has a name on every control', async () => {
    const test = await TestPage.open(browser, { url: recordedUrl() });
    for (const { title } of Object.values(VIEWS)) {
      await test.show(title);
      const nameless = await test.page.evaluate(() =>
        [...document.querySelectorAll('button, a[href], input, select, [tabindex="0"]')]
          .filter((element) => element.checkVisibility())
          .filter((element) => {
            const label = element.getAttribute('aria-label') ?? element.closest('label')?.textContent ?? element.textContent;
            return label.trim() === '' && element.getAttribute('title') === null && element.getAttribute('aria-labelledby') === null;
          })
          .map((element) => element.outerHTML.slice(0, 120)),
      );
      expect(nameless, title).toEqual([]);
    }
    await test.close();
  });
});
