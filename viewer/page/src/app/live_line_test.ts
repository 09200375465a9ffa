import { describe, expect, it } from 'vitest';
import type { LiveProgress } from '../data/protocol';
import { INITIAL_STATE, type State } from '../state/state';
import { recordedSource } from '../testing/recordings';
import { nowWords, stateWords } from './live_line';

const meta = await recordedSource().meta();
const lane = meta.files[0]!.lanes[0]!;

function live(change: Partial<LiveProgress> = {}): LiveProgress {
  return {
    state: 'following', words: '', name: 'process 4711', generation: 1, now_ns: 0, age_ns: 0, events_per_second: 1234.4,
    heaps: [{ device: lane.device, heap: lane.heap, live_bytes: 3 * 2 ** 20, live_blocks: 2 }],
    ...change,
  };
}
const state: State = { ...INITIAL_STATE, meta };

describe('the status line of a live recording', () => {
  it('shows what the shown lane holds now', () => {
    expect(nowWords(live(), state)).toBe('3.00 MiB in 2 blocks now, 1,234 events/s');
    const [heap] = live().heaps;
    expect(nowWords(live({ heaps: [{ ...heap!, live_blocks: 1 }] }), state)).toMatch(/in 1 block now/);
    expect(nowWords(live({ heaps: [] }), state)).toBe('1,234 events/s');
  });
  it('shows whether the recording is followed, and why not', () => {
    expect(stateWords(live(), null)).toBe('Live: process 4711');
    expect(stateWords(live({ words: 'not written: no space' }), null)).toBe('Live: process 4711, not written: no space');
    expect(stateWords(live({ state: 'lost', words: 'its collector is gone' }), null)).toBe('its collector is gone');
    expect(stateWords(live({ state: 'ended', words: 'process 4711 has ended' }), meta.files[0]!)).toMatch(/^Ended at .*: process 4711 has ended$/);
  });
});
