// Pages made from what the program prints about the recordings of tests/golden.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Json } from '../../base/json';
import type { LaneMeta } from '../../data/protocol';
import { INITIAL_STATE } from '../../state/state';
import { laneFor, placeOf } from './follow';
import { fragPage } from './frag_page';
import { leaksPage, suspectLink } from './leaks_page';
import { ledgerPage } from './ledger_page';
import { oomPage } from './oom_page';
import { NO_LINK, stackNumber, type Card, type Cell, type Link, type Page, type Section } from './page';

function load(name: string): Json {
  return new Json(JSON.parse(readFileSync(new URL(`./fixtures/${name}.json`, import.meta.url), 'utf8')) as unknown);
}

function rowsOf(page: Page, title: RegExp): string[][] {
  const section = page.sections.find((each) => title.test(each.title));
  return section?.rows.map((row) => row.map((cell) => cell.text)) ?? [];
}

describe('out of memory', () => {
  const page = oomPage(load('oom'));

  it('shows the verdict and the request', () => {
    const facts = Object.fromEntries(page.facts.map(([name, cell]) => [name, cell.text]));
    expect(facts).toMatchObject({ Verdict: 'fragmentation', Confidence: 'high', 'Requested': '3.00 GiB', When: '3.48 s, step 2, forward', Where: 'GPU 0' });
  });

  it('adds up to what the device has', () => {
    const evidence = load('oom').at('evidence');
    const section = page.sections.find((each) => each.title === 'Memory of GPU 0')!;
    const total = section.rows.reduce((sum, row) => sum + Number(row[1]!.title.replace(/\D/g, '')), 0);
    // The last row is the device itself.
    expect(total).toBe(2 * evidence.number('total_bytes'));
    expect(section.rows.at(-1)![0]!.text).toBe('GPU 0');
  });

  it('links live bytes to the flame graph of that moment', () => {
    const section = page.sections.find((each) => each.title === 'Memory of GPU 0')!;
    expect(section.rows[0]![1]!.link).toMatchObject({ view: 'flame', device: 0, heap: 'pytorch', t_ns: 3_480_000_000 });
  });

  it('links counts to blocks, and the free memory of the driver to the ledger', () => {
    const links = (title: RegExp, column: number): (Link | null)[] => page.sections.find((each) => title.test(each.title))!.rows.map((row) => row[column]!.link);
    for (const link of links(/by category/, 2)) expect(link!.category).not.toBe('');
    for (const link of links(/by stack/, 2)) expect(link).not.toBeNull();
    const where = page.sections.find((each) => each.title === 'Memory of GPU 0')!;
    const free = where.rows.find((row) => row[0]!.text === 'free, according to the driver')!;
    expect(free[1]!.link).toMatchObject({ view: 'ledger', device: 0 });
    expect(where.rows.slice(0, -1).every((row) => row[1]!.link !== null)).toBe(true);
  });

  it('shows what helps and what does not', () => {
    expect(rowsOf(page, /^What helps/)[0]).toEqual(['PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True', '~ 15.8 GiB', 'yes', 'merges the free pieces of a stream']);
    expect(rowsOf(page, /does not help/)[0]![0]).toBe('empty_cache()');
  });

  it('shows what requested the memory, and what the step would have needed', () => {
    const lines = Object.fromEntries(page.cards[0]!.lines.map(({ name, cell }) => [name, cell.text]));
    expect(lines['By']).toMatch(/^\S/);
    const expected = { from: 'earlier_steps', bytes: 22 * 2 ** 30, earlier_steps: 266, earlier_peak_bytes: 21 * 2 ** 30 };
    const other = oomPage(new Json({ verdict: 'leak', label: 'main (train.py:7) > f', source: 'loss = f(x)', evidence: { expected, available_bytes: 23 * 2 ** 30 } }));
    expect(other.cards[0]!.lines.map(({ cell }) => cell.text)).toEqual([
      'main (train.py:7) > f', 'loss = f(x)', 'about 22.0 GiB (266 before it: up to 21.0 GiB), 23.0 GiB available',
    ]);
  });

  it('describes the request as the tensor that was recorded, and a large one without as a square', () => {
    const shapeOf = (request: object, total_bytes: number): string | undefined => {
      const asked = { verdict: 'capacity', requested_bytes: 100, square: 2048, evidence: { total_bytes }, ...request };
      return oomPage(new Json(asked)).cards[0]!.lines.find(({ name }) => name === 'Shape')?.cell.text;
    };
    expect(shapeOf({ dtype: 'float32', shape: '[2048, 2048]' }, 200)).toBe('a float32 tensor of [2048, 2048]');
    expect(shapeOf({ dtype: null, shape: null }, 2000)).toBe('perhaps 2,048 x 2,048 elements');
    expect(shapeOf({ dtype: null, shape: null }, 2001)).toBeUndefined();
  });

  it('names what the memory outside the framework is', () => {
    const row = (name: string, mebibytes: number, group: string) => ({ name, bytes: mebibytes * 2 ** 20, group, detail: null });
    const asked = {
      verdict: 'outside',
      evidence: { reserved_bytes: 1, outside_bytes: 700 * 2 ** 20, other_processes_bytes: 2 ** 30, system_bytes: 2 ** 20 },
      outside: [row('context and modules', 480, 'outside_framework'), row('NCCL', 200, 'outside_framework'), row('cuBLAS', 20, 'outside_framework'), row('process 7', 1024, 'other_process')],
    };
    expect(rowsOf(oomPage(new Json(asked)), /^Memory of/).map(([what]) => what)).toEqual([
      'outside the framework: context and modules 480 MiB, NCCL 200 MiB', 'other processes: process 7 1.00 GiB', 'driver and firmware',
    ]);
  });

  it('shows the blocks that pin the free memory only if that is why it failed', () => {
    const stacks = [{ id: 'stack/7', label: 'main (train.py:9)', blocks: 9, block_bytes: 2 ** 20, pinned_bytes: 2 ** 25, oldest_t_ns: 1e9, source: 'keep.append(x)' }];
    const sectionOf = (verdict: string): Section | undefined =>
      oomPage(new Json({ verdict, pins: { blocks: 8, block_bytes: 2 ** 19, pinned_bytes: 2 ** 24, stacks } })).sections.find(({ title }) => / pins? /.test(title));
    expect(sectionOf('fragmentation')!.title).toBe('8 blocks of 512 KiB in total pin 16.0 MiB of the free memory');
    expect(sectionOf('fragmentation')!.rows[0]!.map(({ text }) => text)).toEqual(['main (train.py:9)', '32.0 MiB', '1.00 MiB', '9', '1.00 s', 'keep.append(x)']);
    expect(sectionOf('capacity')).toBeUndefined();
  });

  it('has no heading twice', () => {
    const titles = [...page.charts.map((chart) => (chart.kind === 'trend' ? chart.trend.title : chart.title)), ...page.sections.map(({ title }) => title)];
    expect(new Set(titles).size).toBe(titles.length);
  });

  it('leads from the moment to the last steps before it', () => {
    const when = page.facts.find(([name]) => name === 'When')![1];
    expect(when.link).toMatchObject({ view: 'timeline', t_ns: 3_480_000_000, steps: 3 });
  });

  it('is empty if nothing failed', () => expect(oomPage(load('no_oom'))).toMatchObject({ facts: [], sections: [], charts: [] }));
});

describe('leaks', () => {
  it('name the line that keeps blocks, and link to them', () => {
    const page = leaksPage(load('leaks'));
    const [row] = page.sections[0]!.rows;
    expect(row!.map(({ text }) => text)).toEqual(['leak/1', 'leak', 'loss_of (train.py:37)', '+48.0 MiB', '12.4 GiB', '264', '1', '2.82 s']);
    for (const cell of [0, 2, 3, 4, 5]) expect(row![cell]!.link).toMatchObject({ view: 'timeline', stack: 25, device: 0, heap: 'pytorch', colorBy: 'stack' });
  });

  it('say what is kept, what mends it and when the device is full', () => {
    const [card] = leaksPage(load('leaks')).cards;
    expect(card!.title.text).toBe('leak/1, leak: 48.0 MiB per step, 12.4 GiB in 264 blocks');
    expect(card!.lines.map(({ name, cell }) => [name, cell.text])).toEqual([
      ['What', 'tensors kept; 1 block kept per step, none ever freed'],
      ['Where', 'loss_of (train.py:37)'],
      ['Fix', 'find what keeps it (a list, a dict, a closure); drop it, or keep x.cpu()'],
      ['Outlook', 'GPU 0 is full in about 2.82 s at this rate'],
    ]);
  });

  it('show what was held over the steps, and its trend', () => {
    const [chart] = leaksPage(load('leaks'), () => 24 * 2 ** 30).charts;
    if (chart?.kind !== 'trend') throw new Error('no trend');
    const { values, stepsPerValue, perStep, stepsToFull, capacity } = chart.trend;
    expect(values.length * stepsPerValue).toBeGreaterThan(266 - stepsPerValue); // whole ones only
    expect(perStep).toBe(48 * 2 ** 20);
    expect(stepsToFull).toBeCloseTo(2.82e9 / 84e6, 0);
    expect(capacity).toBe(24 * 2 ** 30);
  });

  it('of several stacks are all blocks that pass through their common line', () => {
    const suspect = new Json({ device: 0, heap: 'pytorch', common_frame: { function: 'f', file: '/home/u/train.py', line: 8 }, stacks: [{ id: 'stack/1' }, { id: 'stack/2' }] });
    expect(suspectLink(suspect)).toMatchObject({ text: 'train.py:8', stack: null, colorBy: 'stack' });
  });

  it('link counts to the blocks, and a minimum to its device', () => {
    const { sections } = leaksPage(load('leaks'));
    const cells = (title: RegExp): readonly Cell[] => sections.find((section) => title.test(section.title))!.rows[0]!;
    expect(cells(/^Suspects/)[5]!.link).toMatchObject({ stack: 25 });
    for (const cell of [0, 2, 3, 4]) expect(cells(/^Minimum/)[cell]!.link).toMatchObject({ view: 'timeline', device: 0, stack: null });
  });

  it('link expected growth to what its function holds', () => {
    const row = leaksPage(load('leaks')).sections.find(({ title }) => title === 'Expected growth')!.rows[0]!;
    expect(row.map(({ text }) => text)).toEqual(['optimizer state (step 1)', '_init_group (adamw.py:140)', '4.00 GiB']);
    for (const { link } of row) expect(link).toEqual({ ...NO_LINK, text: '_init_group', colorBy: 'stack' });
    const unknown = leaksPage(new Json({ benign: [{ label: 'x', frame: null, bytes: 1 }] })).sections[0]!.rows[0]!;
    expect(unknown.map(({ link }) => link)).toEqual([null, null, null]);
  });

  it('show how many steps are missing if it is too early', () => {
    expect(leaksPage(load('early_leaks'))).toMatchObject({ progress: { have: 60, need: 100 } });
    expect(leaksPage(new Json({ enough: false, has_history: false }))).toMatchObject({ progress: null });
  });

  it('show what grows although it is too early for a verdict', () => {
    const page = leaksPage(load('early_leaks'));
    expect(page.cards).toEqual([]);
    expect(rowsOf(page, /^Growing/)).toEqual([['tensors kept', '<module> (train.py:33)', '+252 KiB', '14.8 MiB', '59']]);
  });

  it('show the minimum even if it does not rise', () => {
    const page = leaksPage(load('no_leaks'));
    expect(page.cards).toEqual([]);
    expect(rowsOf(page, /^Minimum/)[0]![0]).toBe('GPU 0');
  });
});

describe('ledger', () => {
  it('ends with the figure of the driver', () => {
    const [section] = ledgerPage(load('ledger')).sections;
    expect(section!.title).toBe('GPU 0: 10.3 GiB in use');
    expect(section!.rows.map((row) => row.slice(0, 2).map((cell) => cell.text))).toEqual([
      ['live blocks', '9.52 GiB'], ['cached', '256 MiB'], ['= reserved', '9.77 GiB'], ['contexts and modules', '500 MiB'], ['= this process', '10.3 GiB'], ['= in use', '10.3 GiB'],
    ]);
    expect(section!.rows.at(-1)!.map((cell) => cell.text)).toEqual(['= in use', '10.3 GiB', '100 %', 'sum', 'of 80.0 GiB']);
    expect(section!.rows[0]![4]!.text).toBe('22 blocks of pytorch');
    expect(section!.note).toBe('At the peak, 19.8 ms; NVML reported 500 MiB 19.6 ms earlier, recorded since then +9.77 GiB.');
    expect(section!.rows[0]![1]!.link).toMatchObject({ view: 'flame', device: 0 });
  });
});

describe('the bar of a ledger', () => {
  const barOf = (json: Json) => {
    const [chart] = ledgerPage(json).charts;
    if (chart?.kind !== 'bar') throw new Error('no bar');
    return chart;
  };
  it('has parts that add up to the mark of the driver, in different colours', () => {
    const { parts, marks } = barOf(load('ledger'));
    expect(marks.map(({ name }) => name)).toEqual(['NVML', 'capacity']);
    expect(parts.reduce((sum, part) => sum + part.bytes, 0)).toBe(marks[0]!.bytes);
    expect(new Set(parts.map(({ hue }) => hue)).size).toBe(parts.length);
  });
  it('shows what is unexplained, unless more was recorded than the driver reports', () => {
    const names = (unexplained_bytes: number): string[] => barOf(new Json({ devices: [{ unexplained_bytes }] })).parts.map(({ name }) => name);
    expect([names(5), names(-5)]).toEqual([['unexplained'], []]);
  });
});

describe('fragmentation', () => {
  it('splits free memory by cause', () => {
    const page = fragPage(load('frag'));
    expect(page.sections[0]!.title).toBe('GPU 0: 256 MiB of 9.77 GiB reserved are free');
    expect(page.sections[0]!.rows[0]!.map((cell) => cell.text)).toEqual([
      'in segments without live blocks', '256 MiB', '100 %', 'by torch.cuda.empty_cache()',
    ]);
  });

  it('says what expandable segments would free, and where the pins come from', () => {
    const pins = [{ id: 'stack/7', blocks: 4, block_bytes: 8 * 2 ** 20, pinned_bytes: 2 ** 30, source: 'self.m = x.clone()' }];
    const { cards } = fragPage(new Json({ devices: [{ device: 0, expandable_bytes: 202 * 2 ** 20, pins }] }));
    expect(cards[0]!.lines.find(({ name }) => name === 'Over time')!.cell.link).toMatchObject({ view: 'timeline', device: 0, heap: 'pytorch', whatif: 'expandable_segments:True' });
    expect(cards.map(({ title }) => title.text)).toEqual(['expandable_segments:True would free up to 202 MiB', '4 blocks of 8.00 MiB in total pin 1.00 GiB']);
    expect(cards[1]!.lines.at(-1)).toMatchObject({ cell: { text: 'self.m = x.clone()' }, isCode: true });
    expect(cards[1]!.title.link).toMatchObject({ stack: 7, colorBy: 'stack' });
  });

  it('says what expandable segments would have reserved as the program does, if they were replayed', () => {
    const cardOf = (replayed: number) => {
      const device = { device: 0, reserved_bytes: 2 ** 30, expandable_bytes: 20 * 2 ** 20, expandable_reserved_bytes: replayed };
      const [{ title, lines }] = fragPage(new Json({ devices: [device] })).cards as [Card];
      return [title.text, lines.map(({ name }) => name)];
    };
    expect(cardOf(2 ** 29)).toEqual(['expandable_segments:True would have reserved 512 MiB instead of 1.00 GiB at that moment, in a replay', ['Set', 'Over time']]);
    expect(cardOf(2 ** 30)).toEqual(['expandable_segments:True would have reserved no less at that moment, in a replay', ['Over time']]);
  });

  it('says if expandable segments would have reserved less at that moment, but more at the peak', () => {
    const claimOf = (expandable_peak_reserved_bytes: number): string => {
      const device = { reserved_bytes: 2 ** 30, expandable_bytes: 1, expandable_reserved_bytes: 2 ** 29, recorded_peak_reserved_bytes: 2 ** 31, expandable_peak_reserved_bytes };
      return fragPage(new Json({ devices: [device] })).cards[0]!.title.text;
    };
    expect(claimOf(3 * 2 ** 30)).toMatch(/in a replay, but more at its peak: 3.00 GiB instead of 2.00 GiB$/);
    expect(claimOf(2 ** 31)).toMatch(/in a replay$/);
  });

  it('shows each cause over time', () => {
    const history = [1, 2].map((pinned) => ({ t_ns: pinned * 1e9, split: { pinned, releasable: 4 } }));
    const [chart] = fragPage(new Json({ devices: [{ device: 0, history }] })).charts;
    if (chart?.kind !== 'layers') throw new Error('no layers');
    expect(chart.moments).toEqual(['1.00 s', '2.00 s']);
    expect(chart.layers.find(({ name }) => name === 'pinned by live blocks')!.values).toEqual([1, 2]);
  });

  it('links every number of a segment to the segments of that moment', () => {
    const segment = { address: 4096, bytes: 100, live_bytes: 60, free_bytes: 40, largest_free_bytes: 30 };
    const { sections } = fragPage(new Json({ devices: [{ device: 0, t_ns: 7, reserved_bytes: 100, segments: [segment] }] }));
    const row = sections.find(({ title }) => /^Segments/.test(title))!.rows[0]!;
    expect(row.slice(1, 5).map(({ text }) => text)).toEqual(['100 B', '60 B', '40 B', '30 B']);
    for (const cell of row.slice(0, 5)) expect(cell.link).toMatchObject({ view: 'segments', device: 0, t_ns: 7 });
  });

  it('lists code whose sizes vary, and what padding would save', () => {
    const site = { id: 'stack/7', label: 'main (train.py:9)', requests: 20, sizes: 12, smallest_bytes: 2 ** 21, largest_bytes: 2 ** 23, held_bytes: 2 ** 22, source: 'x = embed(tokens)' };
    const page = (padded: number | null): Section | undefined =>
      fragPage(new Json({ devices: [{ device: 0, reserved_bytes: 2 ** 30, varying_sizes: { sites: [site], padded_reserved_bytes: padded } }] })).sections.find(({ title }) => title.startsWith('Code'));
    expect(page(2 ** 29)?.note).toBe('Padded to its largest size, these would have reserved 512 MiB instead of 1.00 GiB, in a replay.');
    expect(page(2 ** 30 - 1)?.note).toContain('hardly less');
    expect(page(null)).toMatchObject({ note: '' });
    expect(page(null)?.rows[0]?.[0]).toMatchObject({ text: 'main (train.py:9)', link: { stack: 7, view: 'timeline' } });
  });
  it('is empty without an allocator', () => expect(fragPage(new Json({ devices: [] }))).toMatchObject({ sections: [], charts: [] }));
});

describe('every page', () => {
  it.each([oomPage, (json: Json): Page => leaksPage(json), ledgerPage, fragPage])('accepts JSON of an unexpected shape', (make) => {
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
