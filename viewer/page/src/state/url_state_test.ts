import { describe, expect, it } from 'vitest';
import { INITIAL_STATE, NO_FILTER, type State } from './state';
import { readUrl, writeUrl, type LinkedState } from './url_state';

const STATE: State & LinkedState = {
  ...INITIAL_STATE, following: true, place: { window: 3, dropped: 0 }, moment: { t_ns: 22e9, steps: 3 },
  view: 'flame', file: 1, other: 0, lane: 2, axis: 'step', layout: 'address', colorBy: 'age', whatif: 'expandable_segments:True,max_split_size_mb:64',
  range: { from: 1.25, to: 3e9 }, rangeEvents: { from: 4, to: 9 }, band: { low: 0, high: 2 ** 40 }, cursor: 0, otherCursor: 5, base: 7,
  selection: { kind: 'range', from: 3, to: 8, box: { layout: 'address', axis: 'step', low: 0, high: 2 ** 40 } }, of: 'growth',
  rangeA: { from: 1, to: 2, box: { layout: 'stacked', axis: 'event', low: 5, high: 6.5 } },
  filter: { text: '/a&b=ü#/', category: 'kv cache', stack: 1, forward_stack: 9, key: 4294967295, stream: '0x7', thread: 'main (1)', min_size: 0, max_size: 5 },
  flame: { inverted: true, folded: false, icicle: false, focus: 99, search: 'x y', compare: true, byCategory: true },
  table: { by: 'file', sort: 'name', descending: false },
  breakdown: { open: true, of: 'cursor', levels: ['line', 'category', 'stream'], folded: false, sort: 'growth', side: 'other', descending: false },
  lanes: { align: 'clock', order: ['1.0', '0.2', '2'], pinned: ['0.2'], toggled: ['0.0', '3.1'] }, lanesRange: { from: 0, to: 2.5e9 }, lanesCursor: { event: 0, position: 1.5 },
  notes: [{ file: 1, event: 7, ns: 70, text: 'why? a=b&c #1 ü' }],
};

describe('the address', () => {
  it('holds everything that a link restores', () => expect({ ...INITIAL_STATE, ...readUrl(writeUrl(STATE)) }).toEqual(STATE));
  it('of the initial state is short', () => expect(writeUrl({ ...INITIAL_STATE, place: null, moment: null })).toBe('#v=1'));
  it('holds each kind of selection', () => {
    for (const selection of [{ kind: 'block', row: 5 }, { kind: 'stack', stack: 6 }, { kind: 'instant', event: 0 }, { kind: 'range', from: 3, to: 8, box: null }] as const) {
      expect(readUrl(writeUrl({ ...INITIAL_STATE, place: null, moment: null, selection })).selection).toEqual(selection);
    }
  });
  it('holds a range A without a box, and ignores what is none', () => {
    const rangeA = { from: 3, to: 8, box: null };
    expect(readUrl(writeUrl({ ...INITIAL_STATE, place: null, moment: null, rangeA })).rangeA).toEqual(rangeA);
    for (const text of ['3', '3-x', '-8', '']) expect(readUrl(`#range_a=${text}`).rangeA).toBeUndefined();
  });
  it('of an older page has one level', () => expect(readUrl('#breakdown_by=function').breakdown!.levels).toEqual(['function']));
  it('names each level once', () => expect(readUrl('#breakdown_by=line.x.line.stack').breakdown!.levels).toEqual(['line', 'stack']));
  it('ignores unknown keys and values, and keeps the rest', () => {
    expect(readUrl('#v=7&later=1&view=nothing&axis=event&lane=x&range=5_5&win=4&lane=-1&sel=block-&min=')).toEqual({ axis: 'event', view: 'timeline' });
  });
  it('with malformed content does not throw', () => {
    for (const text of ['', '#', '#%', '#text=%E0%A4', '#&&=&==', '#sel=range-1', '#range=1_2_3']) expect(() => readUrl(text)).not.toThrow();
  });
  it('without a view leads to the timeline if it names anything else', () => {
    expect(readUrl('#v=1&at=3').view).toBe('timeline');
    expect(readUrl('#v=1').view).toBeUndefined();
  });
  it('always names the view, unless it is short', () => {
    const state = { ...INITIAL_STATE, place: null, moment: null };
    for (const view of ['overview', 'timeline'] as const) {
      expect({ ...INITIAL_STATE, ...readUrl(writeUrl({ ...state, view })) }.view).toBe(view);
      expect(readUrl(writeUrl({ ...state, view, cursor: 3 })).view).toBe(view);
    }
  });
  it('keeps the parts of a filter that it does not name', () => {
    expect(readUrl('#text=a&min=4').filter).toEqual({ ...NO_FILTER, text: 'a', min_size: 4 });
  });
});
