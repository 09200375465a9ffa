// Measures how fluid the timeline is: node e2e/run.js e2e/frames_bench.ts PAGE [SECONDS]
//
// PAGE is the built page (dist/index.html). It is served with the fullest possible tiles (30,000
// blocks each, in every window) and zoomed and panned without a pause. Every frame is timed in the
// page, by the time between frames and by the script time in each. Prints one JSON object with
// times in ms. `quads` is what the busiest frames have in the window and draw.

import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Random } from '../src/testing/random';
import { MAX_BLOCKS, type BlockQuery, type BlockTile, type CurveTile, type Meta } from '../src/data/protocol';
import type { Column } from '../src/data/slab';
import { encodeSlab } from '../src/testing/slab_writer';
import { recordedSource } from '../src/testing/recordings';
import { layoutStacked } from '../src/views/timeline/stacked_layout';
import { launch, TestPage } from './page';

const [built, seconds = '6'] = process.argv.slice(2);
if (built === undefined) throw new Error('usage: frames_bench.ts PAGE [SECONDS]');
const page = readFileSync(built);
const recording = recordedSource();
const MIB = 1024 * 1024;
const PEAK = 16 * 1024 * MIB;
const EVENTS = 100_000_000;
let busiest = 0;

async function meta(): Promise<Meta> {
  const made = await recording.meta();
  const file = made.files[0]!;
  const lane = { ...file.lanes[0]!, peak_bytes: PEAK, peak_event: EVENTS / 2, series: ['live'] as const, capacity_bytes: null };
  return { ...made, origin: 'server', files: [{ ...file, events: EVENTS, end_ns: 3600e9, lanes: [lane], phases: [], steps: { ...file.steps, source: '' } }] };
}

// Returns a tile with the maximum number of blocks, the same ones for the same window.
function fullTile(query: BlockQuery): BlockTile {
  const random = new Random(7);
  const size = query.to - query.from;
  const of = <T>(value: (i: number) => T): T[] => Array.from({ length: MAX_BLOCKS }, (_, i) => value(i));
  const lengths = of(() => (size / 300) * 10 ** (-2 * random.next()) + size / query.columns);
  const starts = of((i) => query.from + random.next() * size - lengths[i]! / 2);
  const order = of((i) => i).sort((a, b) => Math.floor(Math.log2(lengths[b]!)) - Math.floor(Math.log2(lengths[a]!)) || starts[a]! - starts[b]!);
  // Their heights add up to roughly the whole plot.
  const area = lengths.reduce((sum, length) => sum + length, 0);
  const height = Math.floor(((PEAK * 0.8) * size) / area);
  const columnOf = (position: number): number => Math.min(query.columns, Math.max(0, Math.ceil(((position - query.from) / size) * query.columns - 0.5)));
  return {
    query,
    first: Uint16Array.from(order, (i) => columnOf(starts[i]!)), last: Uint16Array.from(order, (i) => columnOf(starts[i]! + lengths[i]!)),
    row: Uint32Array.from(order, (_, i) => i), start: Float64Array.from(order, (i) => starts[i]!), end: Float64Array.from(order, (i) => starts[i]! + lengths[i]!),
    size: Float64Array.from(order, () => height), place: new Float64Array(MAX_BLOCKS), stack: Uint32Array.from(order, (i) => 1 + (i % 6)),
    forward_stack: new Uint32Array(MAX_BLOCKS), key: Uint32Array.from(order, (i) => i % 40), category: Uint8Array.from(order, (i) => i % 7), stream: new Uint16Array(MAX_BLOCKS), thread: new Uint16Array(MAX_BLOCKS),
    role: new Uint8Array(MAX_BLOCKS), dtype: new Uint16Array(MAX_BLOCKS),
    flags: new Uint8Array(MAX_BLOCKS), run_begin: new Uint32Array(MAX_BLOCKS + 1), run_column: new Uint16Array(0), run_bytes: new Float64Array(0), hidden: 50_000_000, spaces: [],
  };
}

function curveOf({ from, to, columns }: BlockQuery): CurveTile {
  const at = (c: number): number => from + ((c + 0.5) * (to - from)) / columns;
  const live = Float64Array.from({ length: columns }, () => PEAK * 0.9);
  const event = Uint32Array.from({ length: columns }, (_, c) => Math.max(0, (at(c) / 3600e9) * EVENTS));
  return {
    window: { file: 0, lane: 0, axis: 'time', from, to, columns },
    event, peak: event, ns: Float64Array.from({ length: columns }, (_, c) => at(c)),
    series: new Map([['live', { min: live, max: live, mid: live }]]), samples: new Map(), categories: new Float64Array(0),
  };
}

function queryOf(url: URL): BlockQuery {
  const number = (name: string): number => Number(url.searchParams.get(name));
  return { file: 0, lane: 0, axis: 'time', layout: 'stacked', from: number('from'), to: number('to'), columns: number('columns'), low: number('low'), high: number('high'), rows: number('rows') };
}

function blocksSlab(query: BlockQuery): ArrayBuffer {
  const tile = fullTile(query);
  const { quads } = layoutStacked(tile, curveOf(query), (query.high - query.low) / query.rows / 4);
  // The view is the middle third of the tile, or more if the tile ends at the end of the recording.
  const [from, to] = [query.from + (query.to - query.from) / 3, query.to - (query.to - query.from) / 3];
  let seen = 0;
  for (let i = 0; i < quads.count; ++i) if (quads.x1[i]! > from && quads.x0[i]! < to) ++seen;
  busiest = Math.max(busiest, seen);
  const arrays = Object.entries(tile).filter((entry): entry is [string, Column] => ArrayBuffer.isView(entry[1]));
  return encodeSlab('blocks', { hidden: tile.hidden, spaces: tile.spaces }, new Map(arrays));
}

function curveSlab(query: BlockQuery): ArrayBuffer {
  const { event, peak, ns, series } = curveOf(query);
  const live = series.get('live')!;
  return encodeSlab('curve', {}, new Map<string, Column>([['event', event], ['peak', peak], ['ns', ns], ['live.min', live.min], ['live.max', live.max], ['live.mid', live.mid]]));
}

async function answerTo(url: URL): Promise<unknown> {
  switch (url.pathname.replace(/^\/token\//, '')) {
    case '':
      return page;
    case 'api/meta':
      return meta();
    case 'api/curve':
      return Buffer.from(curveSlab(queryOf(url)));
    case 'api/blocks':
      return Buffer.from(blocksSlab(queryOf(url)));
    case 'api/block':
      return recording.block(0, Number(url.searchParams.get('row')) % (await recording.meta()).files[0]!.lanes[0]!.blocks);
    case 'api/stacks':
      return recording.stacks(0, (url.searchParams.get('ids') ?? '').split(',').map(Number));
    case 'api/source':
      return { path: '', first: 0, lines: [], note: 'not at hand' };
    default:
      return null;
  }
}

async function answer(url: URL, response: ServerResponse): Promise<void> {
  if (url.pathname.endsWith('/alive')) {
    response.setHeader('content-type', 'text/event-stream');
    response.write(`data: ${JSON.stringify({ files: [{ file: 0, state: 'ready', what: '', fraction: 1, error: '' }] })}\n\n`);
    return;
  }
  const body = await answerTo(url);
  if (body === null) response.writeHead(404).end();
  else if (!Buffer.isBuffer(body)) response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  else response.setHeader('content-type', body === page ? 'text/html' : 'application/octet-stream').end(body);
}

interface Timed {
  readonly frames: number[]; // time between frames
  readonly scripts: number[]; // script time in each frame
}
type TimedWindow = Window & { gmtFrames: Timed };

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(2));
}

const server = createServer((request, response) => void answer(new URL(request.url ?? '', 'http://127.0.0.1'), response));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const browser = await launch();
const test = await TestPage.open(browser, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token/#v=1&axis=time`, width: 1600, height: 900 });
await test.page.evaluate(() => {
  const timed = { frames: [] as number[], scripts: [] as number[] };
  (window as unknown as TimedWindow).gmtFrames = timed;
  const ask = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (callback) =>
    ask((time) => {
      const begin = performance.now();
      callback(time);
      timed.scripts.push(performance.now() - begin);
    });
  let before = performance.now();
  const tick = (time: number): void => {
    timed.frames.push(time - before);
    before = time;
    ask(tick);
  };
  ask(tick);
});

// Down to a hundredth of the recording and out again, panning all the time.
const until = Date.now() + Number(seconds) * 1000;
const [x, y] = [900, 500];
await test.page.mouse.move(x, y);
for (let i = 0; Date.now() < until; ++i) {
  await test.page.mouse.wheel(0, i % 80 < 40 ? -60 : 60);
  if (i % 5 === 0) await test.page.keyboard.press(i % 10 < 5 ? 'd' : 'a');
}
const timed = await test.page.evaluate(() => (window as unknown as TimedWindow).gmtFrames);
await test.idle();

const clicks: number[] = [];
for (let i = 0; i < 20; ++i) {
  clicks.push(
    await test.page.evaluate(async (at) => {
      const canvas = document.querySelector('.overlay')!;
      const box = canvas.getBoundingClientRect();
      const event = { clientX: at, clientY: box.top + box.height - 60, pointerId: 1, bubbles: true, button: 0 };
      canvas.setPointerCapture = (): void => undefined; // no real pointer is down
      const before = window.gmtTest!.state().selection;
      const begin = performance.now();
      canvas.dispatchEvent(new PointerEvent('pointerdown', event));
      canvas.dispatchEvent(new PointerEvent('pointerup', event));
      if (window.gmtTest!.state().selection === before) throw new Error('no block was hit');
      const deadline = begin + 10_000;
      while (document.querySelector('.drawer .stack ol li') === null) {
        if (performance.now() > deadline) throw new Error('no stack was shown');
        await new Promise(requestAnimationFrame);
      }
      const end = performance.now();
      await window.gmtTest!.idle();
      document.querySelector<HTMLElement>('.drawer .close')!.click();
      await window.gmtTest!.idle();
      return end - begin;
    }, 400 + i * 40),
  );
}
console.log(
  JSON.stringify({
    quads: busiest, frames: timed.frames.length, frame_median: quantile(timed.frames, 0.5), frame_p95: quantile(timed.frames, 0.95), frame_worst: quantile(timed.frames, 1),
    script_median: quantile(timed.scripts, 0.5), script_p95: quantile(timed.scripts, 0.95), click_to_stack_median: quantile(clicks, 0.5), click_to_stack_worst: quantile(clicks, 1),
    heap_mib: Number(((await test.heap()) / MIB).toFixed(1)), errors: test.errors,
  }),
);
await test.close();
await browser.close();
server.closeAllConnections();
server.close();
