import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Json } from '../../base/json';
import { alignedTimes, comparePage } from './compare_page';

const DIFF = new Json(JSON.parse(readFileSync(new URL('./fixtures/diff.json', import.meta.url), 'utf8')) as unknown);

it('lists what changed, and adds up to the total change', () => {
  const page = comparePage(DIFF);
  expect(page.notes).toEqual(['Changed: cuda_graph_sizes linear -> exponential']);
  const [section] = page.sections;
  expect(section!.title).toBe('GPU 0: +1.09 GiB');
  expect(section!.note).toBe('At step 3 of both, 1 new stack, 0 gone, 2 with moved lines');
  expect(section!.rows[0]!.map((cell) => cell.text)).toEqual(['+600 MiB', '0 B', '600 MiB', '0 → 1', 'unknown', 'Ema.__init__ (ema.py:9)']);
  const exact = section!.rows.map((row) => Number(row[0]!.title.replace(/[^\d-]/g, '')));
  expect(exact.slice(0, -1).reduce((sum, value) => sum + value, 0)).toBe(exact.at(-1));
});

it('links each side to its own recording', () => {
  const [row, other] = comparePage(DIFF).sections[0]!.rows;
  expect(row![1]!.link).toBeNull(); // not in the base
  expect(row![2]!.link).toMatchObject({ side: 'new', stack: 32, device: 0, heap: 'pytorch', t_ns: 710_000_000 });
  expect(other![1]!.link).toMatchObject({ side: 'base', t_ns: 700_000_000 });
});

it('knows the time at which each side of a device is compared', () => {
  expect(alignedTimes(DIFF, 0)).toEqual([700_000_000, 710_000_000]);
  expect(alignedTimes(DIFF, 3)).toBeNull();
});

it('accepts unexpected JSON', () => {
  expect(() => comparePage(new Json({ devices: 3, differences: null }))).not.toThrow();
});
