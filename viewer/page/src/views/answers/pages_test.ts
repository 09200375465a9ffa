// Pages of what the program prints about the recordings of tests/golden.

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
import { NO_LINK, stackNumber, stackWords, type Page } from './page';

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
  it('is not the allocator where the program has no line', () => expect(stackWords(new Json({ frames: taken }))).toBe('at::empty (train.py:7)'));
  it('of a backward pass is the line that it goes back through', () => {
    expect(stackWords(new Json({ frames: taken, forward_frames: [frame('at::mm', 'operator'), frame('forward', 'own')] }))).toBe('backward of forward (train.py:7)');
  });
});

describe('out of memory', () => {
  const page = oomPage(load('oom'));

  it('tells the verdict and who asked', () => {
    const facts = Object.fromEntries(page.facts.map(([name, cell]) => [name, cell.text]));
    expect(facts).toMatchObject({ Verdict: 'fragmentation', Confidence: 'high', 'Asked for': '3.00 GiB', When: '3.48 s, step 2', Where: 'GPU 0' });
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

  it('says what helps and what does not', () => {
    expect(rowsOf(page, /^What helps/)[0]).toEqual(['PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True', '~ 15.8 GiB', 'yes', 'joins the free pieces of a stream']);
    expect(rowsOf(page, /does not help/)[0]![0]).toBe('empty_cache()');
  });

  it('is quiet where nothing failed', () => {
    expect(oomPage(load('no_oom'))).toMatchObject({ tone: 'quiet', sections: [] });
  });
});

describe('leaks', () => {
  it('name the line that keeps blocks, and lead to them', () => {
    const page = leaksPage(load('leaks'));
    expect(page.tone).toBe('finding');
    expect(rowsOf(page, /^Suspects/)[0]).toEqual([
      'leak: tensor kept', 'loss_of (train.py:37)', '+48.0 MiB', '12.4 GiB', '264', '1', '2.82 s', '1 block of every step kept, none ever freed',
    ]);
    const link = page.sections[0]!.rows[0]![3]!.link;
    expect(link).toMatchObject({ view: 'timeline', stack: 25, device: 0, heap: 'pytorch' });
  });

  it('say how many steps are missing when it is too early', () => {
    expect(leaksPage(load('early_leaks'))).toMatchObject({ tone: 'early', progress: { have: 0, need: 100 } });
  });

  it('are quiet where the floor does not rise', () => {
    const page = leaksPage(load('no_leaks'));
    expect(page.tone).toBe('quiet');
    expect(rowsOf(page, /at the least/)[0]![0]).toBe('GPU 0');
  });
});

describe('ledger', () => {
  it('ends with what the driver says is in use', () => {
    const [section] = ledgerPage(load('ledger')).sections;
    expect(section!.title).toBe('GPU 0: 10.3 GiB in use');
    expect(section!.rows.at(-1)!.map((cell) => cell.text)).toEqual(['in use', '10.3 GiB', '100 %', 'sum', '']);
    expect(section!.rows[0]![1]!.link).toMatchObject({ view: 'flame', device: 0 });
  });
});

describe('fragmentation', () => {
  it('tells free memory by cause', () => {
    const page = fragPage(load('frag'));
    expect(page.sections[0]!.title).toBe('GPU 0: 256 MiB of 9.77 GiB reserved are free');
    expect(page.sections[0]!.rows[0]!.map((cell) => cell.text)).toEqual([
      'in segments without a live block: empty_cache() gives it back', '256 MiB', '100 %',
    ]);
  });

  it('is quiet without an allocator', () => expect(fragPage(new Json({ devices: [] }))).toMatchObject({ tone: 'quiet' }));
});

describe('any of them', () => {
  it.each([oomPage, leaksPage, ledgerPage, fragPage])('stands JSON that is not what it should be', (make) => {
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

  it('go to the lane of their memory', () => {
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

  it('know a stack by its id', () => {
    expect(stackNumber('stack/19+12')).toBe(19);
    expect(stackNumber('category/3')).toBeNull();
  });
});
