// One picture per view of the page at URL: shots.ts URL FOLDER. For docs/img; see scripts/screenshots.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch, TestPage } from './page';

const [place, folder] = process.argv.slice(2);
if (place === undefined || folder === undefined) throw new Error('usage: shots.ts URL-OR-FILE FOLDER');
const url = /^https?:/.test(place) ? place : pathToFileURL(path.resolve(place)).href;
mkdirSync(folder, { recursive: true });

async function shoot(test: TestPage, name: string): Promise<void> {
  await test.page.screenshot({ path: path.join(folder!, `${name}.png`) });
}

async function shootByAddress(test: TestPage): Promise<void> {
  await test.press('l');
  await shoot(test, 'by_address');
  await test.press('l');
}

const browser = await launch();
for (const colorScheme of ['light', 'dark'] as const) {
  const test = await TestPage.open(browser, { url, colorScheme, width: 1200, height: 680 });
  await test.page.waitForFunction(() => window.gmtTest?.state().progress?.files.every((file) => file.state === 'ready') ?? false);
  await test.idle();
  const links = test.page.getByRole('navigation').getByRole('link');
  for (let i = 0; i < (await links.count()); i++) {
    const title = (await links.nth(i).textContent()) ?? String(i);
    const name = title.trim().toLowerCase().replaceAll(/[^a-z]+/g, '_');
    if (colorScheme === 'dark' && i > 0) break;
    await links.nth(i).click();
    await test.page.mouse.move(0, 0);
    await test.idle();
    await shoot(test, `${name}${colorScheme === 'dark' ? '_dark' : ''}`);
    if (colorScheme === 'light' && i === 0) await shootByAddress(test);
  }
  await test.close();
}
await browser.close();
