// Pages made from what the program prints about the recordings of tests/golden.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Json } from '../../base/json';
import type { LaneMeta } from '../../data/protocol';
import { INITIAL_STATE } from '../../state/state';
import { laneFor, placeOf } from './follow';
import { fragPage } from './frag_page';
import { leaksPage } from './leaks_page';
import { ledgerPage } from './ledger_page';
import { oomPage } from './oom_page';
import { NO_LINK, stackNumber, stackWords, type Cell, type Link, type Page } from './page';

function load(name: string): Json {
  return new Json(JSON.parse(readFileSync(new URL(`./fixtures/${name}.json`, import.meta.url), 'utf8')) as unknown);
}

function rowsOf(page: Page, title: RegExp): string[][] {
  const section = page.sections.find((each) => title.test(each.title));
  return section?.rows.map((row) => row.map((cell) => cell.text)) ?? [];
}

describe('a stack in words', () => {
  const frame = (name: string, role: string): object => ({ function: name, file: 'train.py', line: 7, role });
  const taken = [frame('malloc', 'allocator'), frame('at::empty', 'operator')];

  it('is the line of the program', () => expect(stackWords(new Json({ frames: [...taken, frame('main', 'own')] }))).toBe('main (train.py:7)'));
  it('is not the allocator if the program has no line', () => expect(stackWords(new Json({ frames: taken }))).toBe('at::empty (train.py:7)'));
  it('of a backward pass is the line of the forward call', () => {
    expect(stackWords(new Json({ frames: taken, forward_frames: [frame('at::mm', 'operator'), frame('forward', 'own')] }))).toBe('backward of forward (train.py:7)');
  });
});

describe('out of memory', () => {
  const page = oomPage(load('oom'));

  it('shows the verdict and the request', () => {
    const facts = Object.fromEntries(page.facts.map(([name, cell]) => [name, cell.text]));
    expect(facts).toMatchObject({ Verdict: 'fragmentation', Confidence: 'high', 'Requested': '3.00 GiB', When: '3.48 s, step 2', Where: 'GPU 0' });
  });

  it('adds up to what the device has', () => {
    const evidence = load('oom').at('evidence');
    const section = page.sections.find((each) => each.title === 'Where the memory was')!;
    const total = section.rows.reduce((sum, row) => sum + Number(row[1]!.title.replace(/\D/g, '')), 0);
    expect(total).toBe(evidence.number('total_bytes'));
  });

  it('links live bytes to the flame graph of that moment', () => {
    const section = page.sections.find((each) => each.title === 'Where the memory was')!;
    expect(section.rows[0]![1]!.link).toMatchObject({ view: 'flame', device: 0, heap: 'pytorch', t_ns: 3_480_000_000 });
  });

  it('links counts to blocks, and the free memory of the driver to the ledger', () => {
    const links = (title: RegExp, column: number): (Link | null)[] => page.sections.find((each) => title.test(each.title))!.rows.map((row) => row[column]!.link);
    for (const link of links(/by category/, 2)) expect(link!.category).not.toBe('');
    for (const link of links(/by stack/, 2)) expect(link).not.toBeNull();
    const where = page.sections.find((each) => each.title === 'Where the memory was')!;
    const free = where.rows.find((row) => row[0]!.text === 'free, according to the driver')!;
    expect(free[1]!.link).toMatchObject({ view: 'ledger', device: 0 });
    expect(where.rows.every((row) => row[1]!.link !== null)).toBe(true);
  });

  it('shows what helps and what does not', () => {
    expect(rowsOf(page, /^What helps/)[0]).toEqual(['PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True', '~ 15.8 GiB', 'yes', 'joins the free pieces of a stream']);
    expect(rowsOf(page, /does not help/)[0]![0]).toBe('empty_cache()');
  });

  it('is quiet if nothing failed', () => {
    expect(oomPage(load('no_oom'))).toMatchObject({ tone: 'quiet', sections: [] });
  });
});

describe('leaks', () => {
  it('name the line that keeps blocks, and link to them', () => {
    const page = leaksPage(load('leaks'));
    expect(page.tone).toBe('finding');
    expect(rowsOf(page, /^Suspects/)[0]).toEqual([
      'leak: tensor kept', 'loss_of (train.py:37)', '+48.0 MiB', '12.4 GiB', '264', '1', '2.82 s', '1 block of every step kept, none ever freed',
    ]);
    const link = page.sections[0]!.rows[0]![3]!.link;
    expect(link).toMatchObject({ view: 'timeline', stack: 25, device: 0, heap: 'pytorch' });
  });

  it('link counts to the blocks, and a minimum to its device', () => {
    const { sections } = leaksPage(load('leaks'));
    const cells = (title: RegExp): readonly Cell[] => sections.find((section) => title.test(section.title))!.rows[0]!;
    expect(cells(/^Suspects/)[4]!.link).toMatchObject({ stack: 25 });
    for (const cell of cells(/^Minimum/)) expect(cell.link).toMatchObject({ view: 'timeline', device: 0, stack: null });
  });

  it('link growth that is not a leak to what its function holds', () => {
    const row = leaksPage(load('leaks')).sections.find(({ title }) => /not a leak/.test(title))!.rows[0]!;
    expect(row.map(({ text }) => text)).toEqual(['optimizer state (step 1)', '_init_group (adamw.py:140)', '4.00 GiB']);
    expect([row[1]!.link, row[2]!.link]).toEqual([{ ...NO_LINK, text: '_init_group' }, { ...NO_LINK, text: '_init_group' }]);
    const unknown = leaksPage(new Json({ benign: [{ label: 'x', frame: null, bytes: 1 }] })).sections[0]!.rows[0]!;
    expect(unknown.map(({ link }) => link)).toEqual([null, null, null]);
  });

  it('show how many steps are missing if it is too early', () => {
    expect(leaksPage(load('early_leaks'))).toMatchObject({ tone: 'early', progress: { have: 0, need: 100 } });
  });

  it('are quiet if the minimum does not rise', () => {
    const page = leaksPage(load('no_leaks'));
    expect(page.tone).toBe('quiet');
    expect(rowsOf(page, /^Minimum/)[0]![0]).toBe('GPU 0');
  });
});

describe('ledger', () => {
  it('is quiet if everything is explained', () => {
    for (const [unexplained_bytes, tone] of [[0, 'quiet'], [1024, 'finding']] as const)
      expect(ledgerPage(new Json({ devices: [{ unexplained_bytes }] })).tone).toBe(tone);
  });
  it('ends with the figure of the driver', () => {
    const [section] = ledgerPage(load('ledger')).sections;
    expect(section!.title).toBe('GPU 0: 10.3 GiB in use');
    expect(section!.rows.at(-1)!.map((cell) => cell.text)).toEqual(['in use', '10.3 GiB', '100 %', 'sum', '']);
    expect(section!.rows[0]![1]!.link).toMatchObject({ view: 'flame', device: 0 });
  });
});

describe('fragmentation', () => {
  it('splits free memory by cause', () => {
    const page = fragPage(load('frag'));
    expect(page.sections[0]!.title).toBe('GPU 0: 256 MiB of 9.77 GiB reserved are free');
    expect(page.sections[0]!.rows[0]!.map((cell) => cell.text)).toEqual([
      'in segments without live blocks: empty_cache() releases it', '256 MiB', '100 %',
    ]);
  });

  it('links every number of a segment to the segments of that moment', () => {
    const segment = { address: 4096, bytes: 100, live_bytes: 60, free_bytes: 40, largest_free_bytes: 30 };
    const { sections } = fragPage(new Json({ devices: [{ device: 0, t_ns: 7, reserved_bytes: 100, segments: [segment] }] }));
    const row = sections.find(({ title }) => /^Segments/.test(title))!.rows[0]!;
    expect(row.slice(1, 5).map(({ text }) => text)).toEqual(['100 B', '60 B', '40 B', '30 B']);
    for (const cell of row.slice(0, 5)) expect(cell.link).toMatchObject({ view: 'segments', device: 0, t_ns: 7 });
  });

  it('is quiet without an allocator', () => expect(fragPage(new Json({ devices: [] }))).toMatchObject({ tone: 'quiet' }));
});

describe('every page', () => {
  it.each([oomPage, leaksPage, ledgerPage, fragPage])('accepts JSON of an unexpected shape', (make) => {
    for (const odd of [null, 3, [], 'x', { suspects: 3, devices: [null], evidence: [] }]) {
      expect(() => make(new Json(odd))).not.toThrow();
    }
  });
});

describe('links', () => {
  const lanes = [
    { lane: 0, device: 0, heap: 'pytorch' },
    { lane: 1, device: 0, heap: 'driver' },
    { lane: 2, device: 1, heap: 'driver' },
  ] as unknown as LaneMeta[];

  it('lead to the lane of their memory', () => {
    expect(laneFor({ lanes }, { ...NO_LINK, device: 0, heap: 'driver' }, 2)).toBe(1);
    expect(laneFor({ lanes }, { ...NO_LINK, device: 1, heap: 'pytorch' }, 0)).toBe(2);
    expect(laneFor({ lanes }, { ...NO_LINK, device: 7 }, 1)).toBe(1);
    expect(laneFor({ lanes }, NO_LINK, 2)).toBe(2);
  });

  it('set filter and selection to the blocks', () => {
    expect(placeOf(INITIAL_STATE, { lanes }, { ...NO_LINK, stack: 25 })).toMatchObject({
      view: 'timeline', filter: { stack: 25, text: '' }, selection: { kind: 'stack', stack: 25 },
    });
  });

  it('set the text of the filter, and clear its other fields', () => {
    const state = { ...INITIAL_STATE, filter: { ...INITIAL_STATE.filter, stack: 4, min_size: 9 } };
    expect(placeOf(state, { lanes }, { ...NO_LINK, text: 'init' }).filter).toEqual({ ...INITIAL_STATE.filter, text: 'init' });
  });

  it('find a stack by its id', () => {
    expect(stackNumber('stack/19+12')).toBe(19);
    expect(stackNumber('category/3')).toBeNull();
  });
});
