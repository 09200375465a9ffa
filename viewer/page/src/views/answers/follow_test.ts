import { expect, it } from 'vitest';
import type { Axis } from '../../data/protocol';
import { domainOf, Navigator, positionOnAxis } from '../../state/navigator';
import { Store } from '../../state/store';
import { recordedSource } from '../../testing/recordings';
import { follow } from './follow';
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
