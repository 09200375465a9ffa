import { expect, it } from 'vitest';
import { playedFrom, playedTo, WHOLE_MS } from './playback';

it('takes about the same time for a range of any size', () => {
  for (const to of [1_000, 50_000_000]) {
    let event = 0;
    let ms = 0;
    for (; event < to; ms += 50) event = playedTo(event, 50, { from: 0, to });
    expect(Math.abs(ms / WHOLE_MS - 1)).toBeLessThan(0.25); // it moves by whole events
  }
});

it('moves by at least one event, and not beyond the end', () => {
  expect(playedTo(5, 0, { from: 0, to: 9 })).toBe(6);
  expect(playedTo(5, 1e9, { from: 0, to: 9 })).toBe(9);
});

it('restarts from the beginning at the end, and outside of the range', () => {
  expect(playedFrom(4, { from: 2, to: 9 })).toBe(4);
  expect(playedFrom(9, { from: 2, to: 9 })).toBe(2);
  expect(playedFrom(1, { from: 2, to: 9 })).toBe(2);
});
