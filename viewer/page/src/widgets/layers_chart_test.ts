import { expect, it } from 'vitest';
import { edgesOf } from './layers_chart';

it('puts each layer on the one below', () => {
  const layers = [
    { name: 'a', hue: 'blue' as const, values: [1, 2] },
    { name: 'b', hue: 'amber' as const, values: [10, 0] },
  ];
  expect(edgesOf(layers)).toEqual([[[0, 0], [1, 2]], [[1, 2], [11, 2]]]);
});

it('of no layers is nothing', () => expect(edgesOf([])).toEqual([]));
