// node browser.mjs GPUMEMTRACE BUILD_DIR [SCENARIO...]: exported snapshots of all scenarios of write_events.py, or of these,
// in PyTorch's memory viewer (MemoryViz.js), in Chromium.
//
// Nothing leaves the machine (hosted_viewer.mjs): any other request is refused and counted as a
// failure. Screenshots stay in BUILD_DIR.

import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {createRequire} from 'node:module';
import {fileURLToPath} from 'node:url';
import {CHROMIUM, CHROMIUM_FLAGS, importMap, modules, page, serve, whyNot} from './hosted_viewer.mjs';

const SKIPPED = 77;
const here = path.dirname(fileURLToPath(import.meta.url));
const [program, buildDir, ...chosen] = process.argv.slice(2);

function skip(why) {
  console.log(`skipped: ${why}`);
  process.exit(SKIPPED);
}

const reason = whyNot();
if (reason !== '') skip(reason);

// Returns name -> {base64, drawn: the expected shapes according to rules.py, by device}.
function exportSnapshots(folder) {
  const python = process.env.GMT_TORCH_PYTHON || 'python3';
  execFileSync(python, [path.join(here, 'write_events.py'), folder]);
  const written = fs.readdirSync(folder).filter((f) => f.endsWith('.jsonl')).map((f) => path.basename(f, '.jsonl'));
  const unknown = chosen.filter((name) => !written.includes(name));
  if (unknown.length > 0) throw new Error(`no such scenario: ${unknown.join(', ')}`);
  const scenarios = chosen.length > 0 ? chosen : written;
  for (const name of scenarios) {
    const [log, out] = [path.join(folder, `${name}.jsonl`), path.join(folder, `${name}.pickle`)];
    execFileSync(program, ['export', '--format', 'torch', log, '-o', out], {stdio: 'pipe'});
  }
  const expect = `
import json, pickle, sys
sys.path.insert(0, ${JSON.stringify(here)})
import rules
results = {}
for name in sys.argv[2:]:
    snapshot = pickle.load(open(f"{sys.argv[1]}/{name}.pickle", "rb"))
    results[name] = [rules.drawn(snapshot, device) for device in range(len(snapshot["device_traces"]))]
print(json.dumps(results))`;
  const drawn = JSON.parse(execFileSync(python, ['-c', expect, folder, ...scenarios]));
  return Object.fromEntries(scenarios.map((name) => {
    const base64 = fs.readFileSync(path.join(folder, `${name}.pickle`)).toString('base64');
    return [name, {base64, drawn: drawn[name]}];
  }));
}

const SETTINGS = 'Allocator Settings';
const HISTORY = 'Allocator State History';
const VIEWS = {
  'Active Memory Timeline': 'svg polygon',
  'Active Cached Segment Timeline': 'svg polygon',
  [HISTORY]: 'svg rect',
  [SETTINGS]: '',
};
// In a timeline, the overview below it is also a polygon.
const OVERVIEW = 1;

function expectCount(problems, what, count, expected) {
  if (count !== expected) problems.push(`${count} ${what}, expected ${expected}`);
}

// In the page: returns what a view shows after hovering over shapes (the viewer then shows their
// stacks) and clicking events (it then rebuilds that moment).
function look(shapes) {
  const shown = [...document.querySelectorAll('body > div')].find((div) => !/display: none/.test(div.getAttribute('style')));
  const found = shapes === '' ? [] : [...shown.querySelectorAll(shapes)].filter((e) => !e.closest('clipPath'));
  const lines = [...shown.querySelectorAll('pre')];
  const pane = lines.at(-1);
  const events = lines.filter((line) => line !== pane);
  const texts = [shown.innerText];
  const touch = (element, type) => {
    element.dispatchEvent(new MouseEvent(type, {bubbles: true}));
    texts.push(pane.textContent);
  };
  for (const shape of found.slice(0, 40)) touch(shape, 'mouseover');
  const count = found.length;
  for (const i of new Set([0, events.length >> 1, events.length - 1])) if (events[i]) touch(events[i], 'mousedown');
  return {count, events: events.length, text: texts.join('\n')};
}

async function checkView(tab, view, drawn) {
  const problems = [];
  await tab.evaluate(() => new Promise(requestAnimationFrame));
  const {count, events, text} = await tab.evaluate(look, VIEWS[view]);
  const overview = view === HISTORY ? 0 : OVERVIEW;
  if (view !== SETTINGS) expectCount(problems, 'shapes', count, drawn[view] + overview);
  if (view === HISTORY) expectCount(problems, 'events', events, drawn.events);
  if (view === SETTINGS && !text.includes('{')) problems.push('no settings');
  const ofSegments = view === 'Active Cached Segment Timeline';  // segments from before have no frames
  if (drawn.events > 0 && !ofSegments && view !== SETTINGS && !text.includes('/src/')) problems.push('shows no stacks');
  const odd = /.*(NaN|undefined).*/.exec(text);
  if (odd) problems.push(`shows ${JSON.stringify(odd[0])}`);
  return problems;
}

// Returns view -> problems.
async function checkScenario(browser, base, name, drawn) {
  let problems = [];
  const tab = await browser.newPage({viewport: {width: 1400, height: 900}});
  tab.on('console', (message) => message.type() === 'error' && problems.push(`console: ${message.text()}`));
  tab.on('pageerror', (error) => problems.push(`page: ${error.message}`));
  await tab.route('**', (route) => {
    if (route.request().url().startsWith(base)) return route.continue();
    problems.push(`requests ${route.request().url()}`);
    return route.abort();
  });
  await tab.goto(`${base}/${name}`);
  await tab.waitForFunction(() => window.loaded, null, {timeout: 60000}).catch((e) => problems.push(e.message));
  const [, views, gpus] = await tab.locator('select').all();
  const devices = await gpus.locator('option').allInnerTexts();
  expectCount(problems, 'devices', devices.length, drawn.filter((d) => d.events > 0 || d[HISTORY] > 0).length);
  const found = {};
  for (const view of Object.keys(VIEWS)) {
    await views.selectOption(view);
    for (const device of devices.length === 0 ? ['0'] : devices) {
      if (devices.length > 1) await gpus.selectOption(device);
      problems.push(...(await checkView(tab, view, drawn[Number(device)])));
    }
    await tab.screenshot({path: path.join(buildDir, `${name}-${view.replaceAll(' ', '-')}.png`)});
    found[view] = problems;
    problems = [];
  }
  await tab.close();
  return found;
}

const {chromium} = createRequire(path.join(modules, 'x.js'))('playwright-core');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memory_viz.'));
const snapshots = exportSnapshots(folder);
const map = importMap();
const pages = Object.fromEntries(Object.entries(snapshots).map(
  ([name, {base64}]) => [`/${name}`, page(map, base64, Object.keys(VIEWS)[0])]));
const server = await serve(pages);
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  headless: true,
  args: CHROMIUM_FLAGS,
});
let passed = 0, failed = 0;
try {
  const base = `http://127.0.0.1:${server.address().port}`;
  for (const [name, {drawn}] of Object.entries(snapshots)) {
    for (const [view, problems] of Object.entries(await checkScenario(browser, base, name, drawn))) {
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
