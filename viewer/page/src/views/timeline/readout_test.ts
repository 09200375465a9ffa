import { expect, it } from 'vitest';
import { NO_ROW } from '../../data/protocol';
import { readout } from './readout';

it('counts the blocks that are drawn and those that are aggregated', () => {
  expect(readout({ row: Uint32Array.of(4, NO_ROW, 7), hidden: 6060 })).toBe('2 blocks drawn, 6,060 aggregated');
  expect(readout({ row: Uint32Array.of(4, NO_ROW), hidden: 0 })).toBe('1 block drawn, 0 aggregated');
  expect(readout({ row: Uint32Array.of(), hidden: 0 })).toBe('0 blocks drawn, 0 aggregated');
});

it('advises to zoom in if all are aggregated', () => {
  expect(readout({ row: Uint32Array.of(NO_ROW), hidden: 2000 })).toBe('2,000 blocks, all aggregated: zoom in to see them');
  expect(readout({ row: Uint32Array.of(NO_ROW), hidden: 1 })).toBe('1 block, all aggregated: zoom in to see it');
});
