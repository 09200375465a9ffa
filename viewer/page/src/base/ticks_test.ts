import { describe, expect, it } from 'vitest';
import { byteTicks, decimalTicks, timeTicks } from './ticks';

describe('ticks', () => {
  it('of bytes are multiples of a power of two', () => expect(byteTicks(0, 1000, 4)).toEqual([0, 256, 512, 768]));
  it('of bytes are whole bytes', () => expect(byteTicks(0, 3, 10)).toEqual([0, 1, 2, 3]));
  it('of counts have steps of 1, 2 or 5', () => {
    expect(decimalTicks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(decimalTicks(0, 2, 10, 1)).toEqual([0, 1, 2]);
  });
  it('of times are round in minutes', () => expect(timeTicks(0, 240e9, 5)).toEqual([0, 60e9, 120e9, 180e9, 240e9]));
  it('begin inside the window', () => expect(decimalTicks(7, 21, 3)).toEqual([10, 15, 20]));
  it('of an empty window are empty', () => expect(decimalTicks(3, 3, 3)).toEqual([]));
});
