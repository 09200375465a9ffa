import { describe, expect, it } from 'vitest';
import type { DataSource } from '../data/data_source';
import type { FileMeta } from '../data/protocol';
import { clockOf, recordedSource } from '../testing/recordings';
import { clampRange, domainOf, eventOf, fittedTime, Navigator, positionIn, positionOnAxis, roundedRange } from './navigator';
import { Store } from './store';

async function navigating(): Promise<{ store: Store; source: DataSource; navigator: Navigator; file: FileMeta; clock: Float64Array }> {
  const source = recordedSource();
  const store = new Store();
  const meta = await source.meta();
  const file = meta.files[0]!;
  store.update({ meta, axis: 'time', range: domainOf(file, 'time'), rangeEvents: { from: 0, to: file.events } });
  return { store, source, navigator: new Navigator(store, source), file, clock: await clockOf(source) };
}

describe('a range', () => {
  it('stays in the domain and keeps its size', () => {
    expect(clampRange({ from: -30, to: 10 }, { from: 0, to: 100 }, 'event')).toEqual({ from: 0, to: 40 });
    expect(clampRange({ from: 90, to: 130 }, { from: 0, to: 100 }, 'event')).toEqual({ from: 60, to: 100 });
    expect(clampRange({ from: -5, to: 500 }, { from: 0, to: 100 }, 'event')).toEqual({ from: 0, to: 100 });
  });
  it('has short numbers, much finer than a pixel', () => {
    expect(roundedRange({ from: 2961.0600000000004, to: 5233.1234567 })).toEqual({ from: 2961.06, to: 5233.123 });
    expect(roundedRange({ from: 1.5e9 + 0.3, to: 5.5e9 + 0.7 })).toEqual({ from: 1_500_000_000, to: 5_500_000_001 });
    expect(roundedRange({ from: 1 / 3, to: 1 / 3 + 1e-6 })).toEqual({ from: 0.333333333333, to: 0.333334333333 });
    for (const range of [{ from: 0, to: 12_142 }, { from: 0, to: 7 }, { from: 12_345_678_901, to: 12_345_678_921 }]) expect(roundedRange(range)).toEqual(range);
  });
  it('has a minimum size', () => expect(clampRange({ from: 50, to: 50 }, { from: 0, to: 100 }, 'event')).toEqual({ from: 48, to: 52 }));
});

it('fits time to events at either end, unless there is little beside them', () => {
  const domain = { from: 0, to: 1000 };
  expect(fittedTime(400, 600, domain)).toEqual({ from: 396, to: 604 });
  expect(fittedTime(40, 600, domain)).toEqual({ from: 0, to: 611.2 });
  expect(fittedTime(400, 970, domain)).toEqual({ from: 388.6, to: 1000 });
  expect([fittedTime(40, 960, domain), fittedTime(500, 500, domain), fittedTime(NaN, NaN, domain)]).toEqual([domain, domain, domain]);
});

describe('translation', () => {
  it('maps positions to events and events to positions, exact to a column', async () => {
    const { source, file, clock } = await navigating();
    const tile = await source.curve({ file: 0, lane: 0, axis: 'time', from: 0, to: file.end_ns, columns: 4000 });
    const width = file.end_ns / 4000;
    for (let event = 1; event <= file.events; event += 7) {
      const position = clock[event]!;
      expect(Math.abs(positionIn(tile, event) - position)).toBeLessThanOrEqual(width);
      expect(clock[eventOf(tile, position)]).toBeLessThanOrEqual(position + width);
    }
  });
  it('locates an event on any axis, however long the recording', async () => {
    const { navigator, file, clock } = await navigating();
    for (const axis of ['time', 'step'] as const) {
      for (const event of [1, 17, file.events >> 1, file.events - 1]) {
        const found = await navigator.locate(event, axis);
        expect(Math.abs(found - positionOnAxis(file, axis, event, clock[event]!))).toBeLessThanOrEqual(axis === 'time' ? file.end_ns / 400_000 : 0.001);
      }
    }
  });
});

describe('Navigator', () => {
  it('keeps the range in events up to date', async () => {
    const { store, source, navigator, file, clock } = await navigating();
    navigator.learn(await source.curve({ file: 0, lane: 0, axis: 'time', from: 0, to: file.end_ns, columns: 2000 }));
    navigator.setRange({ from: clock[101]!, to: clock[301]! });
    expect(Math.abs(store.get().rangeEvents.from - 101)).toBeLessThan(8);
    expect(Math.abs(store.get().rangeEvents.to - 301)).toBeLessThan(8);
  });
  it('shows the same events on another axis', async () => {
    const { store, navigator, file, clock } = await navigating();
    store.update({ range: { from: clock[100]!, to: clock[400]! }, rangeEvents: { from: 100, to: 400 } });
    await navigator.setAxis('event');
    expect(store.get().range).toEqual({ from: 100, to: 400 });
    await navigator.setAxis('step');
    expect(store.get().range.from).toBeCloseTo(positionOnAxis(file, 'step', 100, clock[100]!), 2);
    expect(store.get().range.to).toBeCloseTo(positionOnAxis(file, 'step', 400, clock[400]!), 2);
  });
  it('keeps the whole recording shown when the axis changes', async () => {
    const { store, navigator, file } = await navigating();
    await navigator.setAxis('event');
    expect(store.get().range).toEqual({ from: 0, to: file.events + 1 });
    expect(navigator.isWhole()).toBe(true);
  });
  it('shows the time of the events, without that before and after, and all of them on other axes again', async () => {
    const { store, navigator, file } = await navigating();
    await navigator.setAxis('event');
    store.update({ meta: { ...store.get().meta!, files: [{ ...file, end_ns: 3 * file.end_ns }] } });
    await navigator.setAxis('time');
    const { range, rangeEvents } = store.get();
    expect(range.from).toBe(0);
    expect(range.to / file.end_ns).toBeCloseTo(1.02, 2);
    expect([rangeEvents, navigator.isWhole()]).toEqual([{ from: 0, to: file.events }, false]);
    await navigator.setAxis('event');
    expect(navigator.isWhole()).toBe(true);
    await navigator.setAxis('time');
    navigator.fit();
    expect(store.get().range).toEqual({ from: 0, to: 3 * file.end_ns });
  });
  it('shows what is live after the last event', async () => {
    const { navigator, file } = await navigating();
    await navigator.setAxis('event');
    const { to } = navigator.domain();
    expect([navigator.positionOf(file.events)! < to, navigator.eventAt(to)]).toEqual([true, file.events]);
  });
  it('moves the range to an event only if it does not contain it', async () => {
    const { store, navigator } = await navigating();
    await navigator.setAxis('event');
    navigator.setRange({ from: 0, to: 100 });
    await navigator.showEvent(50);
    expect(store.get().range).toEqual({ from: 0, to: 100 });
    await navigator.showEvent(500);
    expect(store.get().range).toEqual({ from: 450, to: 550 });
    expect(store.get().cursor).toBe(500);
  });
  it('drops a move whose positions come after the reader has moved the range or opened another recording', async () => {
    const { store, navigator } = await navigating();
    const zoomed = { from: 1e6, to: 2e6 };
    const moves = [() => navigator.showEvent(500), () => navigator.showEvents(400, 500), () => navigator.setAxis('step')];
    const { axis, range } = store.get();
    const changes: readonly (() => void)[] = [() => navigator.setRange(zoomed), () => navigator.showLane(1, 0), () => navigator.dropMove()];
    for (const move of moves) {
      for (const change of changes) {
        store.update({ file: 0, lane: 0, axis, range });
        const moved = move();
        change();
        const shown = store.get();
        await moved;
        expect(store.get()).toBe(shown);
      }
    }
  });
  it('shows what was asked for last, whichever answer comes last', async () => {
    const { store, navigator } = await navigating();
    await Promise.all([navigator.showEvents(400, 500), navigator.showEvents(100, 200)]);
    const { range } = store.get();
    await navigator.showEvents(100, 200);
    expect(store.get().range).toEqual(range);
  });
  it('counts a change of the axis that waits for positions, so that two of them lead two axes further', async () => {
    const { store, navigator } = await navigating();
    store.update({ rangeEvents: { from: 100, to: 400 } });
    const first = navigator.setAxis('event');
    expect(navigator.axis).toBe('event');
    await Promise.all([first, navigator.setAxis('step')]);
    expect([store.get().axis, navigator.axis]).toEqual(['step', 'step']);
  });
  it('drops the stacks of the filter with the recording that numbers them', async () => {
    const { store, navigator } = await navigating();
    store.update({ filter: { ...store.get().filter, text: 'model', stack: 7, forward_stack: 9 } });
    navigator.showLane(0, 1);
    expect(store.get().filter).toMatchObject({ text: 'model', stack: 7 });
    navigator.showLane(1, 0);
    expect(store.get().filter).toMatchObject({ text: 'model', stack: null, forward_stack: null });
  });
  it('zooms around the cursor if it is visible', async () => {
    const { store, navigator } = await navigating();
    await navigator.setAxis('event');
    navigator.setRange({ from: 0, to: 100 });
    store.update({ cursor: 20 });
    navigator.zoom(0.5);
    expect(store.get().range).toEqual({ from: 10, to: 60 });
  });
});

it('keeps the events of a link whatever curves come, until the range moves', async () => {
  const { store, source, navigator, file, clock } = await navigating();
  const overview = await source.curve({ file: 0, lane: 0, axis: 'time', from: 0, to: file.end_ns, columns: 64 });
  store.update({ range: { from: clock[101]!, to: clock[201]! }, rangeEvents: { from: 101, to: 201 } });
  navigator.keepEvents();
  navigator.learn(overview);
  expect(store.get().rangeEvents).toEqual({ from: 101, to: 201 });
  navigator.setRange({ from: clock[301]!, to: clock[401]! });
  navigator.learn(await source.curve({ file: 0, lane: 0, axis: 'time', ...store.get().range, columns: 4000 }));
  expect(Math.abs(store.get().rangeEvents.from - 301)).toBeLessThan(2);
});
