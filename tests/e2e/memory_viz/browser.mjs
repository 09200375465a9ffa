// node browser.mjs GPUMEMTRACE BUILD_DIR: exported snapshots in PyTorch's memory viewer (MemoryViz.js), in Chromium.
//
// Nothing leaves the machine: the viewer's CDN imports are mapped to the npm packages they name, and any other request is
// refused and counted as a failure. Screenshots stay in BUILD_DIR.

import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import {createRequire} from 'node:module';
import {fileURLToPath} from 'node:url';

const SKIPPED = 77;
const CHROMIUM = process.env.GMT_CHROMIUM ?? '/usr/bin/chromium';
const here = path.dirname(fileURLToPath(import.meta.url));
const [program, buildDir] = process.argv.slice(2);

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(SKIPPED);
}

// The viewer: where it is named, else in the wheel, which some versions of torch have it in.
function viewerFolder() {
  if (process.env.GMT_MEMORY_VIZ_JS) return path.dirname(process.env.GMT_MEMORY_VIZ_JS);
  try {
    const find = 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])';
    const torch = execFileSync(process.env.GMT_TORCH_PYTHON ?? 'python3', ['-c', find], {stdio: 'pipe'});
    return path.join(torch.toString().trim(), 'utils', 'viz');
  } catch {
    return '';
  }
}

const viewer = viewerFolder();
if (!fs.existsSync(path.join(viewer, 'MemoryViz.js'))) {
  skip('no MemoryViz.js: run scripts/setup --test, or name one in GMT_MEMORY_VIZ_JS');
}
if (!fs.existsSync(CHROMIUM)) skip(`no ${CHROMIUM}`);

const modules = path.join(here, 'node_modules');
if (!fs.existsSync(modules)) skip('its npm packages are not here: run scripts/setup --test');

// What the viewer and d3's own modules import -> files that this test serves. The viewer names its modules by the address
// of a CDN: .../NAME@MAJOR.
function importMap() {
  const imports = {};
  const places = {};
  for (const name of fs.readdirSync(modules)) {
    const manifest = path.join(modules, name, 'package.json');
    if (!fs.existsSync(manifest)) continue;
    const {module, main} = JSON.parse(fs.readFileSync(manifest));
    imports[name] = places[name] = `/modules/${name}/${module ?? main}`;
  }
  const source = fs.readFileSync(path.join(viewer, 'MemoryViz.js'), 'utf8');
  for (const [, address] of source.matchAll(/from\s+["'](https:[^"']+)["']/g)) {
    const name = /\/([^/@]+)@\d+/.exec(address)?.[1];
    if (places[name]) imports[address] = places[name];
  }
  return {imports};
}

function exportSnapshots(folder) {
  execFileSync(process.env.GMT_TORCH_PYTHON || 'python3', [path.join(here, 'write_events.py'), folder]);
  return Object.fromEntries(['raw_cuda', 'pytorch'].map((name) => {
    const out = path.join(folder, `${name}.pickle`);
    execFileSync(program, ['export', '--format', 'torch', path.join(folder, `${name}.jsonl`), '-o', out], {stdio: 'pipe'});
    return [name, fs.readFileSync(out).toString('base64')];
  }));
}

function page(map, snapshot, view) {
  return `<!DOCTYPE html><html><head><script type="importmap">${JSON.stringify(map)}</script></head><body>
<script type="module">
import {add_local_files} from '/viewer/MemoryViz.js';
add_local_files([{name: 'exported', base64: ${JSON.stringify(snapshot)}}], ${JSON.stringify(view)});
window.loaded = true;
</script></body></html>`;
}

function serve(pages) {
  const roots = {'/modules/': modules, '/viewer/': viewer};
  const server = http.createServer((request, response) => {
    const url = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    if (url in pages) return response.setHeader('content-type', 'text/html').end(pages[url]);
    for (const [prefix, root] of Object.entries(roots)) {
      const file = path.join(root, url.slice(prefix.length));
      if (!url.startsWith(prefix) || !file.startsWith(root)) continue;
      // The older modules of d3 import each other without the extension.
      const found = [file, `${file}.js`].find((f) => fs.existsSync(f) && fs.statSync(f).isFile());
      if (found) return response.setHeader('content-type', 'text/javascript').end(fs.readFileSync(found));
    }
    response.writeHead(url === '/favicon.ico' ? 204 : 404).end();
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

const VIEWS = {
  'Active Memory Timeline': {shapes: 'svg polygon', atLeast: {raw_cuda: 30, pytorch: 10}},
  'Allocator State History': {shapes: 'svg rect', atLeast: {raw_cuda: 30, pytorch: 8}, rows: 'pre'},
};

async function check(browser, base, name, view) {
  const problems = [];
  const tab = await browser.newPage({viewport: {width: 1400, height: 900}});
  tab.on('console', (message) => message.type() === 'error' && problems.push(`console: ${message.text()}`));
  tab.on('pageerror', (error) => problems.push(`page: ${error.message}`));
  await tab.route('**', (route) => {
    if (route.request().url().startsWith(base)) return route.continue();
    problems.push(`asks for ${route.request().url()}`);
    return route.abort();
  });
  await tab.goto(`${base}/${name}/${encodeURIComponent(view)}`);
  await tab.waitForFunction(() => window.loaded, null, {timeout: 30000}).catch((e) => problems.push(e.message));
  const {shapes, atLeast, rows} = VIEWS[view];
  const drawn = await tab.locator(shapes).count();
  if (drawn < atLeast[name]) problems.push(`${drawn} shapes (${shapes}), expected ${atLeast[name]}`);
  if (rows && (await tab.locator(rows).count()) < 10) problems.push('the list of events is empty');
  await tab.screenshot({path: path.join(buildDir, `${name}-${view.replaceAll(' ', '-')}.png`)});
  await tab.close();
  return problems;
}

const {chromium} = createRequire(path.join(modules, 'x.js'))('playwright-core');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memory_viz.'));
const snapshots = exportSnapshots(folder);
const map = importMap();
const pages = {};
for (const [name, snapshot] of Object.entries(snapshots)) {
  for (const view of Object.keys(VIEWS)) pages[`/${name}/${view}`] = page(map, snapshot, view);
}
const server = await serve(pages);
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
let passed = 0, failed = 0;
try {
  for (const name of Object.keys(snapshots)) {
    for (const view of Object.keys(VIEWS)) {
      const problems = await check(browser, `http://127.0.0.1:${server.address().port}`, name, view);
      problems.length === 0 ? ++passed : ++failed;
      console.log(`${problems.length === 0 ? 'ok  ' : 'FAIL'} ${name}: ${view}`);
      for (const problem of problems) console.log(`     ${problem}`);
    }
  }
} finally {
  await browser.close();
  server.close();
  fs.rmSync(folder, {recursive: true});
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
