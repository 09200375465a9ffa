// Takes pictures of the views of the page at URL: shots.ts URL FOLDER programs|job. For docs/img;
// scripts/screenshots records what they show.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { launch, TestPage } from './page';

const [url, folder, shown] = process.argv.slice(2);
if (url === undefined || folder === undefined || (shown !== 'programs' && shown !== 'job')) {
  throw new Error('usage: shots.ts URL FOLDER programs|job');
}
mkdirSync(folder, { recursive: true });

// Files in the order in which they were passed to the program.
const [TRAIN, CHECKPOINTED, OOM, LEAK] = [0, 1, 2, 3];

interface Shot {
  readonly name: string;
  readonly address: Readonly<Record<string, string | number>>;
  readonly scheme?: 'light' | 'dark';
  readonly height?: number;
  /** What a reader does before looking. */
  readonly prepare?: (test: TestPage) => Promise<void>;
}

const PROGRAMS: readonly Shot[] = [
  { name: 'overview', address: { view: 'overview', file: LEAK } },
  { name: 'timeline', address: { view: 'timeline', file: TRAIN } },
  { name: 'timeline_dark', address: { view: 'timeline', file: TRAIN }, scheme: 'dark' },
  { name: 'whatif', address: { view: 'timeline', file: CHECKPOINTED, whatif: 'expandable_segments:True' } },
  { name: 'by_address', address: { view: 'timeline', file: TRAIN, layout: 'address' } },
  { name: 'roles', address: { view: 'timeline', file: TRAIN, color: 'role' } },
  { name: 'filter', address: { view: 'timeline', file: TRAIN, category: 'activations' } },
  { name: 'breakdown', address: { view: 'timeline', file: TRAIN, breakdown_by: 'function', breakdown_sort: 'inclusive' }, prepare: selectRange },
  { name: 'details', address: { view: 'timeline', file: TRAIN }, height: 732, prepare: clickBlock },
  { name: 'flame_graph', address: { view: 'flame', file: TRAIN } },
  { name: 'table', address: { view: 'table', file: TRAIN } },
  { name: 'segments', address: { view: 'segments', file: TRAIN } },
  { name: 'leaks', address: { view: 'leaks', file: LEAK } },
  { name: 'out_of_memory', address: { view: 'oom', file: OOM } },
  { name: 'ledger', address: { view: 'ledger', file: TRAIN } },
  { name: 'fragmentation', address: { view: 'frag', file: CHECKPOINTED } },
  { name: 'compare', address: { view: 'compare', file: TRAIN, other: CHECKPOINTED } },
  { name: 'lanes', address: { view: 'lanes', file: TRAIN, lanes_toggled: `${TRAIN}.1_${CHECKPOINTED}.1` } },
];
// The views that need a job with several ranks.
const JOB: readonly Shot[] = [
  { name: 'ranks', address: { view: 'ranks' }, height: 400 },
];

async function selectRange(test: TestPage): Promise<void> {
  const { x, y, width, height } = (await test.page.locator('.plot .overlay').boundingBox())!;
  await test.page.keyboard.down('Shift');
  await test.page.mouse.move(x + 0.45 * width, y + 0.5 * height);
  await test.page.mouse.down();
  await test.page.mouse.move(x + 0.7 * width, y + 0.5 * height, { steps: 3 });
  await test.page.mouse.up();
  await test.page.keyboard.up('Shift');
  await test.page.mouse.move(0, 0);
  await test.idle();
}

// One of the optimizer's blocks, in the lower third of the plot. Between two blocks there is
// nothing to click.
async function clickBlock(test: TestPage): Promise<void> {
  const box = (await test.page.locator('.plot .overlay').boundingBox())!;
  const drawer = test.page.getByRole('separator');
  for (let y = 0.73; (await drawer.count()) === 0; y += 0.007) {
    await test.page.mouse.click(box.x + box.width * 0.6, box.y + box.height * y);
    await test.idle();
  }
  await test.page.mouse.move(0, 0);
  await test.page.locator('main').focus();
  await test.idle();
}

const browser = await launch();
for (const { name, address, scheme, height, prepare } of shown === 'job' ? JOB : PROGRAMS) {
  const fragment = Object.entries({ v: 1, ...address }).map(([key, value]) => `${key}=${value}`).join('&');
  const test = await TestPage.open(browser, { url: `${url}#${fragment}`, colorScheme: scheme ?? 'light', width: 1200, height: height ?? 680 });
  await test.page.waitForFunction(() => window.gmtTest?.state().progress?.files.every((file) => file.state === 'ready') ?? false);
  await test.idle();
  await test.page.mouse.move(0, 0);
  await prepare?.(test);
  await test.page.screenshot({ path: path.join(folder, `${name}.png`) });
  await test.close();
}
await browser.close();
