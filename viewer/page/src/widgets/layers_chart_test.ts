import { expect, it } from 'vitest';
import { edgesOf, ticksOfTime } from './layers_chart';

it('puts each layer on the one below', () => {
  const layers = [
    { name: 'a', hue: 'blue' as const, values: [1, 2] },
    { name: 'b', hue: 'amber' as const, values: [10, 0] },
  ];
  expect(edgesOf(layers)).toEqual([[[0, 0], [1, 2]], [[1, 2], [11, 2]]]);
});

it('of no layers is nothing', () => expect(edgesOf([])).toEqual([]));

it('has round times on its axis', () => {
  const ticks = ticksOfTime({ from: 0, to: 1.1e9, columns: 110 });
  expect(ticks.map(({ text }) => text)).toEqual(['0', '200 ms', '400 ms', '600 ms', '800 ms', '1.0 s']);
  expect(ticks.map(({ at }) => Math.round(at * 10) / 10)).toEqual([0, 19.5, 39.5, 59.5, 79.5, 99.5]);
  expect(ticksOfTime({ from: 61e9, to: 241e9, columns: 10 }).map(({ text }) => text)).toEqual(['90 s', '120 s', '150 s', '180 s', '210 s', '240 s']);
});
