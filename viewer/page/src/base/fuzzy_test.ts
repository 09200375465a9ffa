import { expect, it } from 'vitest';
import { fuzzyScore } from './fuzzy';

it('requires the letters in order', () => {
  expect(fuzzyScore('flm', 'Flame graph')).not.toBeNull();
  expect(fuzzyScore('mlf', 'Flame graph')).toBeNull();
});

it('prefers word beginnings and consecutive letters', () => {
  expect(fuzzyScore('fg', 'Flame graph')!).toBeGreaterThan(fuzzyScore('fg', 'Offing')!);
  expect(fuzzyScore('tab', 'Table')!).toBeGreaterThan(fuzzyScore('tab', 'The address bar')!);
});
