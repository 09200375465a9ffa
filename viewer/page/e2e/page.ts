// A browser with one page of ours, for tests. It waits until the page is idle, and collects what
// must not happen: requests to other origins and errors in the console.

import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import type { State } from '../src/state/state';

const HANG_MS = 120_000; // guards against hanging; not a limit of speed
const CHROMIUM = process.env['GMT_CHROMIUM'] ?? '/usr/bin/chromium';

/** '' if a browser is present, otherwise why these tests are skipped. */
export const noBrowser = existsSync(CHROMIUM) ? '' : `skipped: no ${CHROMIUM}; name a browser in GMT_CHROMIUM`;
if (noBrowser !== '') console.log(noBrowser);

const ARGS = [
  '--enable-unsafe-swiftshader',
  '--force-device-scale-factor=1',
  '--font-render-hinting=none',
  '--disable-lcd-text',
  '--hide-scrollbars',
  '--js-flags=--expose-gc',
  '--enable-precise-memory-info', // otherwise heap sizes are rounded, and are not updated for minutes
];

export function launch(): Promise<Browser> {
  // In a container the user is root, for which Chromium has no sandbox.
  return chromium.launch({ executablePath: CHROMIUM, headless: true, chromiumSandbox: false, args: ARGS, timeout: HANG_MS });
}

export interface OpenOptions {
  readonly url: string;
  readonly colorScheme?: 'light' | 'dark';
  readonly reducedMotion?: 'reduce' | 'no-preference';
  readonly width?: number;
  readonly height?: number;
}

/** Returns the address of a standalone file with two recordings. */
export function recordedUrl(): string {
  const file = process.env['GMT_RECORDED_PAGE'];
  if (file === undefined) throw new Error('e2e/global_setup.ts has not run');
  return pathToFileURL(file).href;
}

export class TestPage {
  private constructor(
    readonly page: Page,
    private readonly context: BrowserContext,
    /** Requests that left the page's origin. Must stay empty. */
    readonly strayRequests: string[],
    /** Errors and warnings of the console and uncaught exceptions. Must stay empty. */
    readonly errors: string[],
  ) {}

  static async open(browser: Browser, options: OpenOptions): Promise<TestPage> {
    const context = await browser.newContext({
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
      colorScheme: options.colorScheme ?? 'light',
      reducedMotion: options.reducedMotion ?? 'reduce',
      // A file has no origin of its own, so nothing may be requested at all.
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
      // The server refuses a question whose data is still being loaded; the page asks it again.
      if (message.text().includes('status of 503')) return;
      if (message.type() === 'error' || message.type() === 'warning') errors.push(`${message.text()} ${message.location().url}`);
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

  /** Waits until every file is loaded or has failed. */
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

  /** Opens a view by its tab. */
  async show(title: string): Promise<void> {
    await this.page.getByRole('navigation').getByRole('link', { name: title, exact: true }).click();
    await this.idle();
  }

  snapshot(selector = 'main'): Promise<string> {
    return this.page.locator(selector).ariaSnapshot();
  }

  /** Returns the bytes of the page's heap after a garbage collection. */
  heap(): Promise<number> {
    return this.page.evaluate(() => {
      const { gc } = globalThis as { gc?: () => void };
      gc?.();
      return (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize;
    });
  }

  /**
   * Fails if anything happened that must not happen. A test that expects such an event removes it
   * first.
   */
  async close(): Promise<void> {
    const happened = [...this.errors, ...this.strayRequests.map((url) => `requested ${url}`)];
    await this.context.close();
    if (happened.length > 0) throw new Error(happened.join('\n'));
  }
}

/**
 * Opens a page, passes it to `use` when its files are loaded, and closes it. Fails if anything
 * happened that must not happen.
 */
export async function visit(browser: Browser, url: string, use: (test: TestPage) => Promise<void>): Promise<void> {
  const test = await TestPage.open(browser, { url });
  try {
    await test.untilReady();
    await use(test);
  } finally {
    await test.close();
  }
}
