import { expect, it } from 'vitest';
import { telling } from './draw_plot';

it('writes as many digits of addresses as distinguish them', () => {
  expect(telling(['0x7f0000000000', '0x7f0004000000'])).toBe(7);
  expect(telling(['0x7f03a3e00000', '0x7f03b3e00000'])).toBe(8);
  expect(telling(['0x7f03a3e00000', '0x7f03a3e00000'])).toBe(7); // the same segment, released and reserved again
  expect(telling(['0x17f0000000000', '0x7f0000000000'])).toBe(10);
});
