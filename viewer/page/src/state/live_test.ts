import { describe, expect, it } from 'vitest';
import { NO_ROW, type FileMeta, type LiveMeta, type Meta } from '../data/protocol';
import { recordedFile } from '../testing/recordings';
import { carried, firstRange, followedRange, moved, momentKey, placeOf, stageOf } from './live';
import { domainOf } from './navigator';
import { INITIAL_STATE, type State } from './state';

const base = await recordedFile();

function fileWith(live: LiveMeta, change: Partial<FileMeta> = {}): FileMeta {
  return { ...base, events: 1000, end_ns: 100e9, live, ...change };
}
function metaOf(file: FileMeta): Meta {
  return { protocol: 1, version: '', origin: 'server', files: [file] };
}
function liveMeta(change: Partial<LiveMeta> = {}): LiveMeta {
  return { generation: 1, window: 0, first_window: 0, names: 0, begin_ns: 0, dropped_events: 0, ...change };
}
function stateOf(file: FileMeta, change: Partial<State> = {}): State {
  return { ...INITIAL_STATE, meta: metaOf(file), axis: 'time', range: domainOf(file, 'time'), rangeEvents: { from: 0, to: file.events }, ...change };
}

describe('a window that follows', () => {
  it('keeps its width and ends at the newest moment', () => {
    expect(followedRange({ from: 70, to: 100 }, { from: 0, to: 100 }, { from: 0, to: 130 }, false)).toEqual({ from: 100, to: 130 });
  });
  it('stays whole if it was whole', () => {
    expect(followedRange({ from: 0, to: 100 }, { from: 0, to: 100 }, { from: 20, to: 130 }, true)).toEqual({ from: 20, to: 130 });
  });
  it('is no wider than the domain', () => {
    expect(followedRange({ from: 0, to: 90 }, { from: 0, to: 100 }, { from: 60, to: 130 }, false)).toEqual({ from: 60, to: 130 });
  });
  it('begins with the last minute', () => {
    expect(firstRange({ from: 0, to: 300e9 }, true)).toEqual({ from: 240e9, to: 300e9 });
    expect(firstRange({ from: 0, to: 30e9 }, true)).toEqual({ from: 0, to: 30e9 });
  });
});

describe("a reader's choice", () => {
  const more = fileWith(liveMeta({ generation: 2 }), { events: 1500, end_ns: 150e9 });
  const next = fileWith(liveMeta({ generation: 3, window: 1, begin_ns: 40e9, dropped_events: 400 }), { events: 1300, end_ns: 150e9 });
  const chosen = {
    cursor: 700, base: 300, selection: { kind: 'range', from: 500, to: 900, box: null }, rangeA: { from: 300, to: 450, box: null }, range: { from: 50e9, to: 60e9 }, rangeEvents: { from: 500, to: 600 },
  } as const;

  it('is unchanged in the next generation of its window', () => {
    const state = stateOf(fileWith(liveMeta()), chosen);
    expect(moved(state, metaOf(more), NO_ROW)).toEqual({ lane: 0, ...chosen });
  });

  it('is renumbered in the next window', () => {
    const state = stateOf(fileWith(liveMeta()), chosen);
    expect(moved(state, metaOf(next), NO_ROW)).toEqual({
      lane: 0, cursor: 300, base: 0, selection: { kind: 'range', from: 100, to: 500, box: null }, rangeA: { from: 0, to: 50, box: null }, range: { from: 50e9, to: 60e9 }, rangeEvents: { from: 100, to: 200 },
    });
  });

  it('moves with its window on the event axis', () => {
    const state = stateOf(fileWith(liveMeta()), { ...chosen, axis: 'event', range: { from: 500, to: 600 } });
    expect(moved(state, metaOf(next), NO_ROW).range).toEqual({ from: 100, to: 200 });
  });

  it('of a block gets its new row, and is dropped if the block is gone', () => {
    const state = stateOf(fileWith(liveMeta()), { selection: { kind: 'block', row: 812 } });
    expect(moved(state, metaOf(next), 33).selection).toEqual({ kind: 'block', row: 33 });
    expect(moved(state, metaOf(next), NO_ROW).selection).toEqual({ kind: 'none' });
  });

  it('is dropped in another recording, but following continues', () => {
    const other = fileWith(liveMeta({ generation: 4, window: 2, first_window: 2 }), { events: 20, end_ns: 160e9 });
    const state = stateOf(fileWith(liveMeta()), { ...chosen, filter: { ...INITIAL_STATE.filter, stack: 7, text: 'x' }, following: true, range: { from: 90e9, to: 100e9 } });
    expect(moved(state, metaOf(other), 33)).toEqual({
      lane: 0, cursor: null, base: null, selection: { kind: 'none' }, rangeA: null, filter: { ...INITIAL_STATE.filter, text: 'x' },
      range: { from: 150e9, to: 160e9 }, rangeEvents: { from: 0, to: 20 },
    });
  });

  it('of a lane keeps its heap when lanes are reordered', () => {
    const { lanes } = base;
    const swapped = { ...next, lanes: [...lanes].reverse().map((lane, i) => ({ ...lane, lane: i })) };
    const state = stateOf(fileWith(liveMeta()), { lane: 0 });
    const { lane } = moved(state, metaOf(swapped), NO_ROW);
    expect(swapped.lanes[lane!]!.heap).toBe(lanes[0]!.heap);
    expect(swapped.lanes[lane!]!.device).toBe(lanes[0]!.device);
  });

  it('to follow is kept in any window', () => {
    const state = stateOf(fileWith(liveMeta()), { following: true, range: { from: 90e9, to: 100e9 } });
    expect(moved(state, metaOf(next), NO_ROW).range).toEqual({ from: 140e9, to: 150e9 });
  });
});

describe('an address of a live recording', () => {
  const next = fileWith(liveMeta({ generation: 3, window: 3, first_window: 1, begin_ns: 40e9, dropped_events: 400 }), { events: 1300, end_ns: 150e9 });
  const linked = {
    following: false, axis: 'event', cursor: 700, base: 300, selection: { kind: 'block', row: 8 },
    range: { from: 500, to: 650 }, rangeEvents: { from: 500, to: 600 },
  } as const;
  const state = stateOf(next, linked);

  it('names the window of its numbers', () => {
    expect(placeOf(state)).toEqual({ window: 3, dropped: 400 });
    expect(placeOf(stateOf(base))).toBeNull();
  });
  it('is unchanged in the same window', () => expect(carried(state, { window: 3, dropped: 400 })).toEqual({}));
  it('is translated to the same events in a later window', () => {
    expect(carried(state, { window: 2, dropped: 100 })).toEqual({
      cursor: 400, base: 0, selection: { kind: 'none' }, rangeA: null, range: { from: 200, to: 350 }, rangeEvents: { from: 200, to: 300 },
    });
  });
  it('is translated to the same time in a later window, and to all steps', () => {
    const times = { from: 50e9, to: 60e9 };
    expect(carried({ ...state, axis: 'time', range: times }, { window: 2, dropped: 100 }).range).toEqual(times);
    const steps = carried({ ...state, axis: 'step', range: { from: 2, to: 3 } }, { window: 2, dropped: 100 }).range;
    expect(steps).toEqual(domainOf(next, 'step'));
  });
  it('of another recording follows this one from its end', () => {
    for (const window of [0, 4]) {
      const change = carried(stateOf(next, { ...linked, filter: { ...state.filter, stack: 5 } }), { window, dropped: 0 });
      expect(change).toMatchObject({ following: true, cursor: null, base: null, selection: { kind: 'none' }, range: { from: 0, to: 1301 } });
      expect(change.filter!.stack).toBeNull();
    }
  });
});

describe('keys', () => {
  it('change with the generation if the answer may change', () => {
    const progress = { files: [{ file: 0, state: 'ready', what: '', fraction: 1, error: '' }] } as const;
    expect(stageOf({ ...stateOf(base), progress })).toBe('ready');
    expect(stageOf({ ...stateOf(fileWith(liveMeta({ generation: 7 }))), progress })).toBe('ready 7');
  });
  it('are the same at every newest moment', () => {
    const file = fileWith(liveMeta());
    expect(momentKey(stateOf(file, { following: true }), 1000)).toBe('now');
    expect(momentKey(stateOf(file, { following: true, cursor: 5 }), 5)).toBe(5);
    expect(momentKey(stateOf(file), 1000)).toBe(1000);
  });
});
