import { describe, expect, it } from 'vitest';
import type { FileMeta, LaneMeta, Meta } from '../data/protocol';
import { cursorEvent, scopeOf, scopeWords } from './scope';
import { INITIAL_STATE, type State } from './state';

const LANE = { lane: 0, peak_event: 70 } as LaneMeta;
const META = { files: [{ file: 0, lanes: [LANE] } as unknown as FileMeta] } as unknown as Meta;
const STATE: State = { ...INITIAL_STATE, meta: META, rangeEvents: { from: 9.5, to: 20.25 } };

describe('scope', () => {
  it('is null before a lane is known', () => expect(scopeOf(INITIAL_STATE)).toBeNull());

  it('uses the peak without a cursor', () => {
    expect(cursorEvent(STATE)).toBe(70);
    expect(scopeOf(STATE)).toMatchObject({ of: 'live', to: 70 });
    expect(scopeWords(STATE)).toBe('held at the peak');
  });

  it('uses the cursor if there is one', () => {
    expect(scopeOf({ ...STATE, cursor: 0 })).toMatchObject({ to: 0 });
    expect(scopeWords({ ...STATE, cursor: 12345 })).toBe('held after event 12,345');
  });

  it('measures growth from the earlier to the later cursor', () => {
    expect(scopeOf({ ...STATE, of: 'growth', cursor: 10, base: 30 })).toMatchObject({ from: 10, to: 30 });
    expect(scopeOf({ ...STATE, of: 'growth' })).toMatchObject({ from: 0, to: 70 });
  });

  it('rounds the range outwards to whole events', () => {
    expect(scopeOf({ ...STATE, of: 'kept' })).toMatchObject({ of: 'kept', from: 9, to: 21 });
  });
});
