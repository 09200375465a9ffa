import { expect, it } from 'vitest';
import { Json } from './json';

const json = new Json({ a: 3, b: 'x', c: [1, 'y', null], d: { e: true }, f: null, g: [{ h: 1 }] });

it('reads values that are present', () => {
  expect(json.number('a')).toBe(3);
  expect(json.text('b')).toBe('x');
  expect(json.texts('c')).toEqual(['y']);
  expect(json.at('d').flag('e')).toBe(true);
  expect(json.list('g')[0]!.number('h')).toBe(1);
});

it('reads a missing value, or one of another type, as empty', () => {
  expect(json.number('b')).toBe(0);
  expect(json.numberOrNull('f')).toBeNull();
  expect(json.text('a')).toBe('');
  expect(json.list('a')).toEqual([]);
  expect(json.at('c').at('0').isNull()).toBe(true);
  expect(new Json(undefined).at('x').list('y')).toEqual([]);
});
