// A browser with one page of ours, as tests use it: it waits until the page has come to rest, and
// keeps what must not have happened (a request to elsewhere, an error in the console).

import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import type { State } from '../src/state/state';

const HANG_MS = 120_000; // no measure of speed
const CHROMIUM = process.env['GMT_CHROMIUM'] ?? '/usr/bin/chromium';

/** '' : a browser is there; else why these tests are skipped. */
export const noBrowser = existsSync(CHROMIUM) ? '' : `skipped: no ${CHROMIUM}; name a browser in GMT_CHROMIUM`;
if (noBrowser !== '') console.log(noBrowser);

const ARGS = [
  '--enable-unsafe-swiftshader',
  '--force-device-scale-factor=1',
  '--font-render-hinting=none',
  '--disable-lcd-text',
  '--hide-scrollbars',
  '--js-flags=--expose-gc',
  '--enable-precise-memory-info', // else sizes of the heap are rounded, and stay what they were for minutes
];

export function launch(): Promise<Browser> {
  // In a container one is root, and there Chromium has no sandbox.
  return chromium.launch({ executablePath: CHROMIUM, headless: true, chromiumSandbox: false, args: ARGS, timeout: HANG_MS });
}

export interface OpenOptions {
  readonly url: string;
  readonly colorScheme?: 'light' | 'dark';
  readonly reducedMotion?: 'reduce' | 'no-preference';
  readonly width?: number;
  readonly height?: number;
}

export function generatedUrl(): string {
  const file = process.env['GMT_GENERATED_PAGE'];
  if (file === undefined) throw new Error('e2e/global_setup.ts has not run');
  return pathToFileURL(file).href;
}

export class TestPage {
  private constructor(
    readonly page: Page,
    private readonly context: BrowserContext,
    /** Requests that left the page's origin; must stay empty. */
    readonly strayRequests: string[],
    /** Errors and warnings of the console, exceptions that nobody caught; must stay empty. */
    readonly errors: string[],
  ) {}

  static async open(browser: Browser, options: OpenOptions): Promise<TestPage> {
    const context = await browser.newContext({
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
      colorScheme: options.colorScheme ?? 'light',
      reducedMotion: options.reducedMotion ?? 'reduce',
      // A file has no origin of its own: nothing may be asked for at all.
      offline: options.url.startsWith('file:'),
    });
    const page = await context.newPage();
    page.setDefaultTimeout(HANG_MS);
    const strayRequests: string[] = [];
    const errors: string[] = [];
    const home = options.url.replace(/[#?].*$/, '');
    page.on('request', (request) => {
      const url = request.url();
      const isOwn = url.startsWith(home) || url.startsWith('data:') || url.startsWith('blob:');
      if (!isOwn) strayRequests.push(url);
    });
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text());
    });
    await page.goto(options.url);
    const test = new TestPage(page, context, strayRequests, errors);
    await test.idle();
    return test;
  }

  async idle(): Promise<void> {
    await this.page.waitForFunction(() => window.gmtTest !== undefined);
    await this.page.evaluate(() => window.gmtTest!.idle());
  }

  /** Until every file is there, or cannot be. */
  async untilReady(): Promise<void> {
    await this.page.waitForFunction(
      () => window.gmtTest?.state().progress?.files.every((file) => file.state === 'ready' || file.state === 'failed') ?? false,
      undefined,
      { timeout: HANG_MS },
    );
    await this.idle();
  }

  state(): Promise<State> {
    return this.page.evaluate(() => window.gmtTest!.state());
  }

  commands(): Promise<readonly { readonly id: string; readonly title: string; readonly hotkeys: readonly string[] }[]> {
    return this.page.evaluate(() => window.gmtTest!.commands().map((command) => ({ ...command })));
  }

  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key);
    await this.idle();
  }

  /** Goes to a view by its tab. */
  async show(title: string): Promise<void> {
    await this.page.getByRole('navigation').getByRole('link', { name: title, exact: true }).click();
    await this.idle();
  }

  snapshot(selector = 'main'): Promise<string> {
    return this.page.locator(selector).ariaSnapshot();
  }

  /** Bytes of the page's heap after a collection. */
  heap(): Promise<number> {
    return this.page.evaluate(() => {
      const { gc } = globalThis as { gc?: () => void };
      gc?.();
      return (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize;
    });
  }

  /** Fails where anything happened that must not have; a test that means it to happen takes it out before. */
  async close(): Promise<void> {
    const happened = [...this.errors, ...this.strayRequests.map((url) => `asked for ${url}`)];
    await this.context.close();
    if (happened.length > 0) throw new Error(happened.join('\n'));
  }
}

/** Opens a page, hands it to `use` when its files are there, and closes it: what must not have happened fails. */
export async function visit(browser: Browser, url: string, use: (test: TestPage) => Promise<void>): Promise<void> {
  const test = await TestPage.open(browser, { url });
  try {
    await test.untilReady();
    await use(test);
  } finally {
    await test.close();
  }
}
