// node speedscope.mjs GPUMEMTRACE BUILD_DIR: exported profiles and folded stacks in the page of speedscope, in Chromium.
//
// For every profile, the table of functions that the page shows is compared with the file: the
// function with most bytes is first, each with its own bytes. Nothing leaves the machine: any request to
// another address is refused and counted as a failure. Screenshots stay in BUILD_DIR.

import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import {createRequire} from 'node:module';
import {fileURLToPath} from 'node:url';

const SKIPPED = 77;
const CHROMIUM = process.env.GMT_CHROMIUM ?? '/usr/bin/chromium';
const CHROMIUM_FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm'};
const MS_TO_LOAD = 60000;
const here = path.dirname(fileURLToPath(import.meta.url));
const release = path.join(here, 'node_modules', 'speedscope', 'dist', 'release');
const [program, buildDir] = process.argv.slice(2);

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(SKIPPED);
}

if (!fs.existsSync(CHROMIUM)) skip(`no ${CHROMIUM}`);
if (!fs.existsSync(release)) skip('its npm packages are not installed: run scripts/setup --test');

// Every name and every number of a row is different, so that the page cannot show them by accident.
const FRAMES = {
  1: [['forward', 10], ['main', 1]],
  2: [['backward', 20], ['main', 1]],
  3: [['evil </script><script>document.title="owned"</script>', 30], ['main', 2]],
};
const EVENTS = [
  ['alloc', 'driver', 0x100000000, 64 << 20, 2, 0],
  ['alloc', 'pytorch', 0x100000000, 20 << 20, 1, 0],
  ['alloc', 'pytorch', 0x101400000, 30 << 20, 2, 0],
  ['free', 'pytorch', 0x100000000, 0, 0, 0],
  ['alloc', 'pytorch', 0x100000000, 7 << 20, 1, 0],
  ['alloc', 'pytorch', 0x103200000, 5 << 20, 3, 0],
  ['alloc', 'driver', 0x200000000, 9 << 20, 3, 1],
];

function writeLog(file) {
  const lines = [{kind: 'header', schema: 'gpumemtrace.events/1',
    devices: [0, 1].map((index) => ({index, name: 'Test GPU', total_bytes: 2 ** 34}))}];
  for (const [id, frames] of Object.entries(FRAMES)) {
    lines.push({kind: 'stack', id: Number(id), frames: frames.map(
      ([name, line]) => ({function: name, file: '/src/train.py', line, language: 'python'}))});
  }
  EVENTS.forEach(([kind, heap, address, size, stack, device], i) => {
    lines.push({kind, t_ns: i * 1000, heap, memory: heap === 'driver' ? 'device' : 'block', address, size, stack, device});
  });
  fs.writeFileSync(file, lines.map((line) => JSON.stringify(line)).join('\n') + '\n');
}

// Returns the bytes of each function itself, most first, as the page should show them, from stacks
// of names, outermost first.
function functionsOf(stacks) {
  const bytes = {};
  for (const [names, amount] of stacks) bytes[names.at(-1)] = (bytes[names.at(-1)] ?? 0) + amount;
  return Object.entries(bytes).filter(([, amount]) => amount > 0).sort((a, b) => b[1] - a[1]);
}

function serve() {
  const server = http.createServer((request, response) => {
    const url = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const file = path.join(release, url === '/' ? 'index.html' : url);
    if (!file.startsWith(release) || !fs.existsSync(file)) return response.writeHead(404).end();
    response.setHeader('content-type', TYPES[path.extname(file)] ?? 'application/octet-stream');
    return response.end(fs.readFileSync(file));
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

// Opens a file in a new tab and returns the rows of its table, with all text of the page.
async function rowsShown(browser, base, text, screenshot, problems) {
  const tab = await browser.newPage({viewport: {width: 1400, height: 900}});
  tab.on('console', (message) => message.type() === 'error' && problems.push(`console: ${message.text()}`));
  tab.on('pageerror', (error) => problems.push(`page: ${error.message}`));
  await tab.route('**', (route) => {
    if (/^(data|blob):/.test(route.request().url()) || route.request().url().startsWith(base)) return route.continue();
    problems.push(`requests ${route.request().url()}`);
    return route.abort();
  });
  await tab.goto(base);
  await tab.setInputFiles('input[type=file]', {name: 'profile', mimeType: 'text/plain', buffer: Buffer.from(text)});
  await tab.getByText('Sandwich').first().click({timeout: MS_TO_LOAD});
  await tab.getByText('Symbol Name').waitFor({timeout: MS_TO_LOAD});
  // The rows come after the heading.
  await tab.waitForFunction(() => {
    const rows = [...[...document.querySelectorAll('table')].at(-1).querySelectorAll('tr')];
    return rows.length > 0 && rows.every((row) => /^\d/.test(row.querySelectorAll('td')[1]?.innerText.trim() ?? ''));
  }, null, {timeout: MS_TO_LOAD});
  const rows = await tab.evaluate(() => [...[...document.querySelectorAll('table')].at(-1).querySelectorAll('tr')].map(
    (row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim())));
  const shown = await tab.locator('body').innerText();
  await tab.screenshot({path: screenshot});
  await tab.close();
  return {rows, shown};
}

// Returns "20.00 MB (80%)" or "20,971,520 (80%)" as a number; the page counts in units of 1024.
function amountOf(text) {
  const [, number, unit] = /^([\d.,]+) ?([KMG]?)/.exec(text);
  return Number(number.replaceAll(',', '')) * 1024 ** ' KMG'.indexOf(unit || ' ');
}

async function checkShown(browser, base, text, title, wanted) {
  const problems = [];
  const screenshot = path.join(buildDir, `speedscope-${title.replaceAll(/\W+/g, '-')}.png`);
  const {rows, shown: pageText} = await rowsShown(browser, base, text, screenshot, problems);
  if (!pageText.includes(title)) problems.push(`shows no title ${title}`);
  const shown = rows.map(([, self, name]) => [name, amountOf(self)]).filter(([, amount]) => amount > 0);
  if (JSON.stringify(shown) !== JSON.stringify(wanted)) {
    problems.push(`shows ${JSON.stringify(shown)} instead of ${JSON.stringify(wanted)}`);
  }
  return problems;
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'speedscope.'));
const log = path.join(folder, 'run.jsonl');
writeLog(log);
function exported(format) {
  const out = path.join(folder, `run.${format}`);
  execFileSync(program, ['export', '--format', format, '--at', 'end', log, '-o', out], {stdio: 'pipe'});
  return fs.readFileSync(out, 'utf8');
}
const file = JSON.parse(exported('speedscope'));
const folded = exported('folded');
const {chromium} = createRequire(path.join(here, 'x.js'))('playwright-core');
const server = await serve();
const browser = await chromium.launch({executablePath: CHROMIUM, headless: true, args: CHROMIUM_FLAGS});
let passed = 0, failed = 0;
function report(name, problems) {
  problems.length === 0 ? ++passed : ++failed;
  console.log(`${problems.length === 0 ? 'ok  ' : 'FAIL'} ${name}`);
  for (const problem of problems) console.log(`     ${problem}`);
}
try {
  const names = file.profiles.map((p) => p.name);
  const wanted = ['cuda:0 pytorch: held at end', 'cuda:0 pytorch: allocated in total until then',
    'cuda:1 driver: held at end', 'cuda:1 driver: allocated in total until then'];
  report('profiles of the file', names.join() === wanted.join() ? [] : [names.join()]);
  const base = `http://127.0.0.1:${server.address().port}/`;
  for (const [index, profile] of file.profiles.entries()) {
    const stacks = profile.samples.map((stack, i) => [stack.map((f) => file.shared.frames[f].name), profile.weights[i]]);
    const text = JSON.stringify({...file, activeProfileIndex: index});
    report(profile.name, await checkShown(browser, base, text, profile.name, functionsOf(stacks)));
  }
  const stacks = folded.trim().split('\n').map((line) => {
    const space = line.lastIndexOf(' ');
    return [line.slice(0, space).split(';'), Number(line.slice(space + 1))];
  });
  report('folded stacks', await checkShown(browser, base, folded, 'profile', functionsOf(stacks)));
} finally {
  await browser.close();
  server.close();
  fs.rmSync(folder, {recursive: true});
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
