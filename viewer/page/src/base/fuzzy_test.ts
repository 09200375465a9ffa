import { expect, it } from 'vitest';
import { fuzzyScore } from './fuzzy';

it('wants the letters in their order', () => {
  expect(fuzzyScore('flm', 'Flame graph')).not.toBeNull();
  expect(fuzzyScore('mlf', 'Flame graph')).toBeNull();
});

it('prefers beginnings of words and letters in a row', () => {
  expect(fuzzyScore('fg', 'Flame graph')!).toBeGreaterThan(fuzzyScore('fg', 'Offing')!);
  expect(fuzzyScore('tab', 'Table')!).toBeGreaterThan(fuzzyScore('tab', 'The address bar')!);
});
