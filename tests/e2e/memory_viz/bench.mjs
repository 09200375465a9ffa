// node bench.mjs OUT.json NAME=SNAPSHOT...: measures how long PyTorch's memory viewer
// (MemoryViz.js) takes to draw snapshots in Chromium.
//
// A snapshot is embedded in the page as base64, like in pages written by torch.cuda._memory_viz.
// First picture: from the request for the page until its first polygons are on the screen. Frames:
// while the wheel turns over the plot, in and out. If it takes longer than LIMIT_MS, or the
// browser crashes, `failure` contains a description.

import fs from 'node:fs';
import path from 'node:path';
import {createRequire} from 'node:module';
import {CHROMIUM, CHROMIUM_FLAGS, importMap, modules, page, serve, whyNot} from './hosted_viewer.mjs';

const SKIPPED = 77;
const LIMIT_MS = Number(process.env.GMT_MEMORY_VIZ_LIMIT_MS ?? 120_000);
const FRAMES = 60;
const VIEW = 'Active Memory Timeline';

const [out, ...snapshots] = process.argv.slice(2);
if (out === undefined || snapshots.length === 0) throw new Error('usage: bench.mjs OUT.json NAME=SNAPSHOT...');
const reason = whyNot();
if (reason !== '') {
  console.log(`skipped: ${reason}`);
  process.exit(SKIPPED);
}

function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

// In the page: durations of frames while the wheel turns over the plot, one step per frame.
async function turnWheel(count) {
  const plot = document.querySelector('svg');
  const box = plot.getBoundingClientRect();
  const [clientX, clientY] = [box.left + box.width / 2, box.top + box.height / 3];
  const target = document.elementFromPoint(clientX, clientY) ?? plot;
  const frame = () => new Promise(requestAnimationFrame);
  const durations = [];
  let last = await frame();
  for (let i = 0; i < count; ++i) {
    const deltaY = i % 20 < 10 ? -60 : 60;
    target.dispatchEvent(new WheelEvent('wheel', {deltaY, clientX, clientY, bubbles: true, cancelable: true}));
    const now = await frame();
    durations.push(now - last);
    last = now;
  }
  return durations;
}

function within(limit, work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limit / 1000} s`)), limit);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function measure(chromium, name, file) {
  const browser = await chromium.launch({executablePath: CHROMIUM, headless: true, args: CHROMIUM_FLAGS});
  let server = null;
  try {
    // JavaScript strings have a maximum length.
    const html = page(importMap(), fs.readFileSync(file).toString('base64'), VIEW);
    server = await serve({'/snapshot': html});
    const tab = await browser.newPage({viewport: {width: 1600, height: 900}});
    const died = new Promise((_, reject) => tab.on('crash', () => reject(new Error('the page crashed'))));
    died.catch(() => undefined); // awaited below, except for a crash after the last check
    const begin = performance.now();
    const drawn = (async () => {
      await tab.goto(`http://127.0.0.1:${server.address().port}/snapshot`, {timeout: LIMIT_MS});
      await tab.waitForFunction(() => document.querySelector('svg polygon') !== null, null, {timeout: LIMIT_MS, polling: 20});
      await tab.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    })();
    await within(LIMIT_MS, Promise.race([drawn, died]));
    const first_picture_ms = performance.now() - begin;
    const durations = await within(LIMIT_MS, Promise.race([tab.evaluate(turnWheel, FRAMES), died]));
    return {name, first_picture_ms, frame_median_ms: quantile(durations, 0.5), frame_p95_ms: quantile(durations, 0.95), failure: ''};
  } catch (error) {
    return {name, first_picture_ms: null, frame_median_ms: null, frame_p95_ms: null, failure: error.message.split('\n')[0]};
  } finally {
    server?.closeAllConnections();
    server?.close();
    await within(10_000, browser.close()).catch(() => undefined);
  }
}

const {chromium} = createRequire(path.join(modules, 'x.js'))('playwright-core');
const figures = [];
for (const snapshot of snapshots) {
  const equals = snapshot.indexOf('=');
  figures.push(await measure(chromium, snapshot.slice(0, equals), snapshot.slice(equals + 1)));
  console.log(JSON.stringify(figures.at(-1)));
  fs.writeFileSync(out, JSON.stringify(figures, null, 1));
}
process.exit(0);
