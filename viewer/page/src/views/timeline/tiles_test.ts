import { expect, it } from 'vitest';
import { activity } from '../../base/activity';
import type { DataSource } from '../../data/data_source';
import type { Window } from '../../data/protocol';
import { recordedSource } from '../../testing/recordings';
import { Tiles, type Subject } from './tiles';
import type { VisibleArea } from './wanted';

const SUBJECT: Subject = { file: 0, lane: 0, axis: 'event', layout: 'stacked', stage: 'ready', window: 0 };
const looking = (from: number, to: number): VisibleArea => ({ range: { from, to }, domain: { from: 0, to: 1200 }, width: 300, low: 0, high: 2 ** 30, top: 2 ** 30, height: 200 });

function watched(change: Partial<DataSource> = {}): { tiles: Tiles; asked: string[]; settle: () => Promise<void> } {
  const asked: string[] = [];
  const real = recordedSource();
  const source = new Proxy<DataSource>(real, {
    get(target, name: keyof DataSource) {
      const method = (Reflect.get(change, name) ?? Reflect.get(target, name)) as (...args: unknown[]) => unknown;
      return (...args: unknown[]): unknown => {
        asked.push(name);
        return method.apply(target, args);
      };
    },
  });
  const settle = (): Promise<void> => activity.idle(() => new Promise((resolve) => setTimeout(resolve, 0)));
  return { tiles: new Tiles(source, () => undefined), asked, settle };
}

it('asks once for a view and its surroundings', async () => {
  const { tiles, asked, settle } = watched();
  tiles.look(SUBJECT, looking(400, 500));
  tiles.look(SUBJECT, looking(410, 510));
  await settle();
  tiles.look(SUBJECT, looking(420, 520));
  expect(asked).toEqual(['curve', 'blocks']);
  expect(tiles.picture!.laidOut.quads.count).toBeGreaterThan(10);
});

it('keeps the old picture until the new one is laid out, and drops it for another lane', async () => {
  const { tiles, settle } = watched();
  tiles.look(SUBJECT, looking(0, 1200));
  await settle();
  const first = tiles.picture;
  tiles.look(SUBJECT, looking(400, 440));
  expect(tiles.picture).toBe(first);
  await settle();
  expect(tiles.picture).not.toBe(first);
  tiles.look({ ...SUBJECT, lane: 1 }, looking(400, 440));
  expect(tiles.picture).toBeNull();
  await settle();
});

it('waits for a request on its way in a live recording, except for another numbering or range', async () => {
  const { tiles, asked, settle } = watched();
  tiles.look(SUBJECT, looking(400, 500));
  tiles.look({ ...SUBJECT, stage: 'ready 2' }, looking(410, 510));
  expect(asked).toEqual(['curve', 'blocks']);
  tiles.look({ ...SUBJECT, stage: 'ready 2' }, looking(900, 1000));
  expect(asked.length).toBe(4);
  tiles.look({ ...SUBJECT, stage: 'ready 3', window: 1 }, looking(900, 1000));
  expect(asked.length).toBe(6);
  await settle();
  expect(tiles.picture!.subject.window).toBe(1);
});

it('shows the last view asked for, in whatever order the answers come', async () => {
  const { tiles, settle } = watched();
  for (const from of [0, 300, 600, 900]) tiles.look(SUBJECT, looking(from, from + 40));
  await settle();
  expect(tiles.picture!.curve.window.from).toBeLessThanOrEqual(900);
  expect(tiles.picture!.curve.window.to).toBeGreaterThanOrEqual(940);
});

it.each(['', 'loading', 'coarse', 'coarse 1'])('asks for no blocks while only curves are known: "%s"', async (stage) => {
  const { tiles, asked, settle } = watched();
  tiles.look({ ...SUBJECT, stage }, looking(0, 1200));
  await settle();
  expect(asked).toEqual(['curve']);
  expect(tiles.picture!.laidOut.quads.count).toBeGreaterThan(0); // areas by category
  tiles.look(SUBJECT, looking(0, 1200));
  await settle();
  expect(asked).toEqual(['curve', 'curve', 'blocks']);
  expect(tiles.picture!.blocks.row.length).toBeGreaterThan(0);
});

it('shows the error, and asks again after a while, not in every frame', async () => {
  let isDown = true;
  let time = 0;
  let asked = 0;
  const source = recordedSource();
  const failing = Object.assign(recordedSource(), {
    curve: (window: Window) => {
      ++asked;
      return isDown ? Promise.reject(new Error('gone')) : source.curve(window);
    },
  });
  const tiles = new Tiles(failing, () => undefined, () => time);
  const settle = (): Promise<void> => activity.idle(() => new Promise((resolve) => setTimeout(resolve, 0)));
  tiles.look(SUBJECT, looking(0, 1200));
  await settle();
  expect(tiles.failure).toBe('gone');
  isDown = false;
  for (let look = 0; look < 10; ++look) tiles.look(SUBJECT, looking(0, 1200));
  await settle();
  expect(asked).toBe(1);
  time = 3000;
  tiles.look(SUBJECT, looking(0, 1200));
  tiles.look(SUBJECT, looking(0, 1200));
  await settle();
  expect([asked, tiles.failure, tiles.picture === null]).toEqual([2, '', false]);
});
