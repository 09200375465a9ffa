import { describe, expect, it } from 'vitest';
import type { Frame } from './protocol';
import { asksAddresses, errorOfText, textsOfFrame, textTest } from './text_filter';

const FRAME: Frame = { function: 'forward', file: '/src/model.py', line: 81, library: '', kind: 'user' };

describe('the text of a filter', () => {
  it('matches in either case, an expression case-sensitively', () => {
    expect(textTest('FORWARD')('forward')).toBe(true);
    expect(textTest('/FORWARD/')('forward')).toBe(false);
    expect(textTest('/forw.rd/')('forward')).toBe(true);
    expect(textTest('/(?i)FORWARD/')('forward')).toBe(true);
    expect(() => textTest('/(/')).toThrow();
  });
  it('is refused with a reason, unless it is plain', () => {
    expect(errorOfText('/(/')).toBe('Not a regular expression: unterminated group.');
    for (const text of ['/(?=a)/', '/(?!a)/', '/(?<=a)b/', '/(?<n>a)/', '/(a)\\1/', '/\\\\(?=a)/', '/\\u0041/'])
      expect(errorOfText(text)).toBe('Not a regular expression: look-around, references and named groups are not supported.');
    for (const text of ['/\\(\\?=/', '/\\\\1/', '/\\d+\\.\\w/', '/(?:a|b)+?/', '/[\\]=]/']) expect(errorOfText(text)).toBe('');
    expect(errorOfText('ä'.repeat(501))).toBe('Longer than 1000 bytes.');
    for (const text of ['', '(', '/', '/a', '//', '/(?i)a|b/', 'ä'.repeat(500)]) expect(errorOfText(text)).toBe('');
  });
  it('matches the label of a function in tables', () => {
    expect(textsOfFrame(FRAME).some(textTest('forward (model.py)'))).toBe(true);
    expect(textsOfFrame(FRAME).some(textTest('/^model.py:81$/'))).toBe(true);
    expect(textsOfFrame({ ...FRAME, file: 'k.cu', library: 'lib.so' })).not.toContain('forward (k.cu)');
  });
  it('may be an address', () => {
    expect(['0x7f', '/0x7f/', '/^0X/', '0X7F'].map(asksAddresses)).toEqual([true, true, true, true]);
    expect(['7f', 'forward', '/forward/', 'a0x7'].map(asksAddresses)).toEqual([false, false, false, false]);
  });
});
