import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Answer, AnswerName, LaneMeta } from '../../data/protocol';
import { findingOf, type Finding, type JudgedFile } from './findings';

const END_NS = 22_500_000_000;
const NO_STEPS = { source: '', inferred: false, begin: [], end: [], begin_ns: [], end_ns: [] };
const FILE = { end_ns: END_NS, steps: NO_STEPS, ooms: [], lanes: [{ lane: 0, device: 0, heap: 'pytorch', capacity_bytes: 5000 } as LaneMeta] };

function answer(name: AnswerName, json: unknown): Answer {
  return { name, headline: `the headline of ${name}`, text: '', json };
}
function judged(name: AnswerName, json: unknown, file: JudgedFile = FILE): Finding {
  return findingOf(answer(name, json), file)!;
}
function fixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`./fixtures/${name}.json`, import.meta.url), 'utf8')) as unknown;
}

it('says what the program says', () => expect(judged('oom', fixture('oom')).sentence).toBe('the headline of oom'));

it('a failed allocation is bad, counts the failures and leads to the last steps before it', () => {
  const finding = judged('oom', fixture('oom'));
  expect(finding).toMatchObject({ mood: 'bad', count: 1, view: 'oom', fix: 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (~ 15.8 GiB)' });
  expect(finding.moment).toMatchObject({ view: 'timeline', t_ns: 3_480_000_000, steps: 3 });
});

it('no failed allocation is calm, unless it was close', () => {
  expect(judged('oom', fixture('no_oom'))).toMatchObject({ mood: 'calm', moment: null });
  expect(judged('oom', { verdict: 'none', evidence: { retries: 2 } }).mood).toBe('unsure');
  expect(judged('oom', { verdict: 'unknown' }).mood).toBe('unsure');
});

it('a leak is bad and leads to its blocks in the last steps, in a colour of their own', () => {
  const finding = judged('leaks', fixture('leaks'));
  expect(finding).toMatchObject({ mood: 'bad', count: 1 });
  expect(finding.fix).toMatch(/^find what keeps it/);
  expect(finding.moment).toMatchObject({ view: 'timeline', stack: 25, colorBy: 'stack', t_ns: END_NS, steps: 10 });
});

it('a leak is shown at the end of the last step, because a program that ends frees it, unless it failed later', () => {
  const steps = { source: 'marks', inferred: false, begin: [0, 5], end: [5, 9], begin_ns: [0, 1e9], end_ns: [1e9, 2e9] };
  const failed = [{ event: 12, ns: 3e9, name: '', device: 0, requested: 1, stack: 0 }];
  expect(judged('leaks', fixture('leaks'), { ...FILE, steps }).moment!.t_ns).toBe(2e9);
  expect(judged('leaks', fixture('leaks'), { ...FILE, steps, ooms: failed }).moment!.t_ns).toBe(END_NS);
});

it('a possible leak, too few steps and a rising minimum leave it open', () => {
  expect(judged('leaks', { enough: true, suspects: [{ tier: 'possible', stacks: [{ id: 'stack/7' }] }] })).toMatchObject({ mood: 'unsure', count: 0 });
  expect(judged('leaks', fixture('early_leaks')).mood).toBe('unsure');
  expect(judged('leaks', { enough: true, minima: [{ low_bytes_per_cycle: 4 }] }).mood).toBe('unsure');
  expect(judged('leaks', fixture('no_leaks')).mood).toBe('calm');
});

it.each([[90, 'bad'], [110, 'calm']] as const)('%i of 1000 bytes that empty_cache() would release leave fragmentation %s', (releasable, mood) => {
  const finding = judged('frag', { reserved_bytes: 1000, free_bytes: 200, split: { releasable }, expandable_bytes: 50 });
  expect([finding.mood, finding.fix]).toEqual([mood, mood === 'bad' ? 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (~ 50 B)' : '']);
});

it('fragmentation is bad, however little it is, if memory ran out because of it', () => {
  const little = answer('frag', { reserved_bytes: 1000, free_bytes: 20, split: { releasable: 0 } });
  const moods = ['fragmentation', 'capacity', 'none'].map((verdict) => findingOf(little, FILE, answer('oom', { verdict }))!.mood);
  expect(moods).toEqual(['bad', 'calm', 'calm']);
  expect(findingOf(answer('ledger', {}), FILE, answer('oom', { verdict: 'fragmentation' }))!.mood).toBe('calm');
  expect(findingOf(little, FILE, answer('oom', fixture('oom')))!.sentence).toBe('The reason why memory ran out. the headline of frag');
});

it.each([
  [null, 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (~ 50 B)'],
  [850, 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (reserves 850 B instead of 1000 B, in a replay)'],
  [1000, ''],
])('expandable segments are advised as the replay to %s bytes says, not as the estimate', (expandable_reserved_bytes, fix) => {
  const frag = { reserved_bytes: 1000, free_bytes: 200, split: { releasable: 0 }, expandable_bytes: 50 };
  expect(judged('frag', { ...frag, expandable_reserved_bytes }).fix).toBe(fix);
});

it('memory outside the framework leaves it open, but not contexts, which every process has', () => {
  const rows = (count: number | null): object[] => [
    { group: 'reserved', bytes: 700 },
    { group: 'outside_framework', bytes: 300, count },
  ];
  expect(judged('ledger', { driver_used_bytes: 1000, rows: rows(3) })).toMatchObject({ mood: 'unsure', moment: { view: 'timeline' } });
  expect(judged('ledger', { driver_used_bytes: 1000, rows: rows(null) }).mood).toBe('calm');
  expect(judged('ledger', { driver_used_bytes: 1000, rows: rows(3).slice(1) }).mood).toBe('calm');
});

it('other processes leave it open, because they are explained; what nothing explains is bad', () => {
  const rows = [{ group: 'other_process', bytes: 100 }];
  expect(judged('ledger', { driver_used_bytes: 1000, rows }).mood).toBe('unsure');
  expect(judged('ledger', { driver_used_bytes: 1000, rows, unexplained_bytes: 100 }).mood).toBe('bad');
  for (const unexplained_bytes of [200, -200]) expect(judged('ledger', { driver_used_bytes: 1000, unexplained_bytes }).mood).toBe('bad');
});

it('less than a hundredth of the device is never bad', () => {
  const frag = { device: 0, reserved_bytes: 100, free_bytes: 49, split: { releasable: 0 } };
  expect([judged('frag', frag).mood, judged('frag', { ...frag, free_bytes: 50 }).mood]).toEqual(['calm', 'bad']);
  const ledger = { total_bytes: 5000, driver_used_bytes: 100, unexplained_bytes: 49 };
  expect([judged('ledger', ledger).mood, judged('ledger', { ...ledger, unexplained_bytes: 50 }).mood]).toEqual(['calm', 'bad']);
});

it('a report judges nothing', () => expect(findingOf(answer('report', {}), FILE)).toBeNull());

it.each(['oom', 'leaks', 'frag', 'ledger'] as const)('%s: accepts JSON of an unexpected shape', (name) => {
  for (const odd of [null, 3, [], { suspects: 3, rows: [null], minima: {} }]) expect(() => judged(name, odd)).not.toThrow();
});
