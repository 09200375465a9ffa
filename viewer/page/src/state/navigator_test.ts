import { describe, expect, it } from 'vitest';
import { positionOf } from '../data/generated/select';
import { GeneratedSource } from '../data/generated_source';
import { clampRange, domainOf, eventOf, Navigator, positionIn } from './navigator';
import { Store } from './store';

async function navigating(): Promise<{ store: Store; source: GeneratedSource; navigator: Navigator }> {
  const source = new GeneratedSource();
  const store = new Store();
  const meta = await source.meta();
  const range = domainOf(meta.files[0]!, 'time');
  store.update({ meta, axis: 'time', range, rangeEvents: { from: 0, to: meta.files[0]!.events } });
  return { store, source, navigator: new Navigator(store, source) };
}

describe('a range', () => {
  it('stays in the domain and keeps its size', () => {
    expect(clampRange({ from: -30, to: 10 }, { from: 0, to: 100 }, 'event')).toEqual({ from: 0, to: 40 });
    expect(clampRange({ from: 90, to: 130 }, { from: 0, to: 100 }, 'event')).toEqual({ from: 60, to: 100 });
    expect(clampRange({ from: -5, to: 500 }, { from: 0, to: 100 }, 'event')).toEqual({ from: 0, to: 100 });
  });
  it('has a minimum size', () => expect(clampRange({ from: 50, to: 50 }, { from: 0, to: 100 }, 'event')).toEqual({ from: 48, to: 52 }));
});

describe('translation', () => {
  it('maps positions to events and events to positions, exact to a column', async () => {
    const { source } = await navigating();
    const recording = source.recording(0);
    const tile = await source.curve({ file: 0, lane: 0, axis: 'time', from: 0, to: recording.endNs, columns: 4000 });
    const width = recording.endNs / 4000;
    for (let event = 1; event <= recording.times.length; event += 7) {
      const position = positionOf(recording, 'time', event);
      expect(Math.abs(positionIn(tile, event) - position)).toBeLessThanOrEqual(width);
      expect(positionOf(recording, 'time', eventOf(tile, position))).toBeLessThanOrEqual(position + width);
    }
  });
  it('locates an event on any axis, however long the recording', async () => {
    const { source, navigator } = await navigating();
    const recording = source.recording(0);
    for (const axis of ['time', 'step'] as const) {
      for (const event of [1, 17, recording.times.length >> 1, recording.times.length - 1]) {
        const found = await navigator.locate(event, axis);
        expect(Math.abs(found - positionOf(recording, axis, event))).toBeLessThanOrEqual(axis === 'time' ? recording.endNs / 400_000 : 0.001);
      }
    }
  });
});

describe('Navigator', () => {
  it('keeps the range in events up to date', async () => {
    const { store, source, navigator } = await navigating();
    const recording = source.recording(0);
    navigator.learn(await source.curve({ file: 0, lane: 0, axis: 'time', from: 0, to: recording.endNs, columns: 2000 }));
    navigator.setRange({ from: recording.times[100]!, to: recording.times[300]! });
    expect(Math.abs(store.get().rangeEvents.from - 101)).toBeLessThan(8);
    expect(Math.abs(store.get().rangeEvents.to - 301)).toBeLessThan(8);
  });
  it('shows the same events on another axis', async () => {
    const { store, source, navigator } = await navigating();
    const recording = source.recording(0);
    store.update({ range: { from: recording.times[99]!, to: recording.times[399]! }, rangeEvents: { from: 100, to: 400 } });
    await navigator.setAxis('event');
    expect(store.get().range).toEqual({ from: 100, to: 400 });
    await navigator.setAxis('step');
    expect(store.get().range.from).toBeCloseTo(positionOf(recording, 'step', 100), 2);
    expect(store.get().range.to).toBeCloseTo(positionOf(recording, 'step', 400), 2);
  });
  it('keeps the whole recording shown when the axis changes', async () => {
    const { store, source, navigator } = await navigating();
    await navigator.setAxis('event');
    expect(store.get().range).toEqual({ from: 0, to: source.recording(0).times.length });
    expect(navigator.isWhole()).toBe(true);
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
  const { store, source, navigator } = await navigating();
  const recording = source.recording(0);
  const overview = await source.curve({ file: 0, lane: 0, axis: 'time', from: 0, to: recording.endNs, columns: 64 });
  store.update({ range: { from: recording.times[100]!, to: recording.times[200]! }, rangeEvents: { from: 101, to: 201 } });
  navigator.keepEvents();
  navigator.learn(overview);
  expect(store.get().rangeEvents).toEqual({ from: 101, to: 201 });
  navigator.setRange({ from: recording.times[300]!, to: recording.times[400]! });
  navigator.learn(await source.curve({ file: 0, lane: 0, axis: 'time', ...store.get().range, columns: 4000 }));
  expect(Math.abs(store.get().rangeEvents.from - 301)).toBeLessThan(2);
});
