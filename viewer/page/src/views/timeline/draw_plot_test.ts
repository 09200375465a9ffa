import { describe, expect, it } from 'vitest';
import type { CurveTile } from '../../data/protocol';
import type { Renderer } from '../../render/renderer';
import type { Theme } from '../../render/theme';
import { drawLimits, telling } from './draw_plot';

it('writes as many digits of addresses as distinguish them', () => {
  expect(telling(['0x7f0000000000', '0x7f0004000000'])).toBe(7);
  expect(telling(['0x7f03a3e00000', '0x7f03b3e00000'])).toBe(8);
  expect(telling(['0x7f03a3e00000', '0x7f03a3e00000'])).toBe(7); // the same segment, released and reserved again
  expect(telling(['0x17f0000000000', '0x7f0000000000'])).toBe(10);
});

describe('what is reserved and the memory of the device', () => {
  const max = Float64Array.of(50, 60);
  const window: CurveTile['window'] = { file: 0, lane: 0, axis: 'event', from: 0, to: 2, columns: 2 };
  const series: CurveTile['series'] = new Map([['reserved', { min: max, max, mid: max }]]);
  const drawn = (high: number, capacity: number | null): { readonly texts: string[]; readonly lines: number } => {
    const texts: string[] = [];
    let lines = 0;
    const ignore = (): void => undefined;
    const renderer = { stepLine: ignore, line: () => { ++lines; }, text: (text: string) => { texts.push(text); } } as unknown as Renderer;
    drawLimits(renderer, { window, series }, capacity, { from: 0, to: 2, low: 0, high, box: { left: 0, top: 0, width: 100, height: 100 } }, {} as Theme);
    return { texts, lines };
  };

  it('are lines if they are in the picture', () => expect(drawn(200, 100)).toEqual({ texts: ['capacity 100 B'], lines: 1 }));

  it('are named if they are above it', () => {
    expect(drawn(70, 100)).toEqual({ texts: ['capacity 100 B, above'], lines: 0 });
    expect(drawn(40, 100)).toEqual({ texts: ['reserved 60 B and capacity 100 B, above'], lines: 0 });
    expect(drawn(40, null)).toEqual({ texts: ['reserved 60 B, above'], lines: 0 });
  });
});
