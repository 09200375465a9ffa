import { expect, it } from 'vitest';
import type { Axis } from '../../data/protocol';
import { domainOf, Navigator, positionOnAxis } from '../../state/navigator';
import { Store } from '../../state/store';
import { recordedSource } from '../../testing/recordings';
import { readUrl } from '../../state/url_state';
import { follow, hrefOf, lastSteps, showMoment } from './follow';
import { NO_LINK } from './page';

/** Zoomed in on the last hundredth of the recording, and in bytes. */
async function atTheEnd(axis: Axis) {
  const source = recordedSource();
  const store = new Store();
  const meta = await source.meta();
  const { from, to } = domainOf(meta.files[0]!, axis);
  store.update({ meta, axis, range: { from: to - (to - from) / 100, to }, band: { low: 0, high: 1e6 } });
  return { store, source, navigator: new Navigator(store, source), file: meta.files[0]! };
}

it.each<Axis>(['time', 'event', 'step'])('moves the range to a moment and keeps its width: %s', async (axis) => {
  const { file, ...page } = await atTheEnd(axis);
  const { range: before } = page.store.get();
  const oom = file.ooms[0]!;
  await follow({ ...NO_LINK, t_ns: oom.ns }, page);
  const { range, band, cursor } = page.store.get();
  const at = positionOnAxis(file, axis, oom.event, oom.ns);
  expect(cursor).toBe(oom.event);
  expect([range.from <= at, range.to >= at, band]).toEqual([true, true, null]);
  expect((range.to - range.from) / (before.to - before.from)).toBeCloseTo(1);
});

it('keeps the range if it contains the moment', async () => {
  const { file, ...page } = await atTheEnd('event');
  const { range } = page.store.get();
  await follow({ ...NO_LINK, t_ns: file.end_ns }, page);
  expect(page.store.get().range).toEqual(range);
});

it('shows the whole recording for a stack, whose blocks may be anywhere in it', async () => {
  const { file, ...page } = await atTheEnd('event');
  await follow({ ...NO_LINK, stack: 2 }, page);
  expect(page.store.get().range).toEqual(domainOf(file, 'event'));
});

it.each([{ text: 'forward' }, { device: 0 }])('shows the whole recording for a link without a moment: %j', async (change) => {
  const { file, ...page } = await atTheEnd('event');
  await follow({ ...NO_LINK, ...change }, page);
  expect(page.store.get().range).toEqual(domainOf(file, 'event'));
  expect(page.store.get().filter.text).toBe(change.text ?? '');
});

it('keeps the range for a view that does not use it', async () => {
  const page = await atTheEnd('event');
  const { range } = page.store.get();
  await follow({ ...NO_LINK, view: 'table', stack: 2 }, page);
  expect(page.store.get().range).toEqual(range);
});

it('shows the last steps up to a moment if the link asks for them', async () => {
  const { file, ...page } = await atTheEnd('event');
  const oom = file.ooms[0]!;
  await follow({ ...NO_LINK, t_ns: oom.ns, steps: 2 }, page);
  const { range, cursor } = page.store.get();
  const begun = file.steps.begin.filter((begin) => begin < oom.event);
  expect(cursor).toBe(oom.event);
  expect(range.from).toBeLessThanOrEqual(begun.at(-2)!);
  expect(range.from).toBeGreaterThan(begun.at(-3)!);
  expect(range.to).toBeGreaterThan(oom.event);
  expect(range.to).toBeLessThan(file.events);
});

it('shows a twentieth of a recording without steps', () => {
  const steps = { source: '', inferred: false, begin: [], end: [], begin_ns: [], end_ns: [] };
  expect(lastSteps({ steps, events: 1000 }, 600, 3)).toEqual({ from: 550, to: 600 });
  expect(lastSteps({ steps, events: 1000 }, 20, 3)).toEqual({ from: 0, to: 20 });
});

it.each([{ stack: 2, colorBy: 'stack' as const }, { text: 'forward', steps: 2 }, { view: 'segments' as const, category: 'activations' }])(
  'leads to the same place by its address, in another tab: %j',
  async (change) => {
    const { file, ...here } = await atTheEnd('event');
    const link = { ...NO_LINK, device: 0, t_ns: file.ooms[0]!.ns, ...change };
    const address = hrefOf(link, here.store.get());
    const there = await atTheEnd('event');
    const { moment, place, ...linked } = readUrl(address);
    there.store.update({ range: domainOf(file, 'event'), ...linked, band: null });
    await showMoment(moment!, there);
    here.store.update({ range: domainOf(file, 'event') });
    await follow(link, here);
    const placeIn = ({ view, lane, cursor, filter, selection, colorBy, range }: ReturnType<typeof here.store.get>): object =>
      ({ view, lane, cursor, filter, selection, colorBy, range });
    expect(placeIn(there.store.get())).toEqual(placeIn(here.store.get()));
    expect(place ?? null).toBeNull();
  },
);
