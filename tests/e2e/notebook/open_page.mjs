// Opens a notebook that nbconvert wrote as HTML in a browser, and prints the text of the page in its last frame as soon as that
// has a verdict.
//
// Usage: node open_page.mjs BROWSER FILE
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(new URL('../../../viewer/page/package.json', import.meta.url));
const { chromium } = require('playwright-core');

const [executablePath, file] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage();
await page.goto(pathToFileURL(file).href);
const frame = page.frameLocator('iframe').last();
await frame.getByText('Peak of GPU 0').waitFor({ timeout: 120_000 });
console.log(await frame.locator('body').innerText());
await browser.close();
