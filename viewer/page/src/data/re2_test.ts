import { describe, expect, it } from 'vitest';
import { expressionFromRe2 } from './re2';

function matches(pattern: string, text: string): boolean {
  return expressionFromRe2(pattern).test(text);
}

describe('an expression of RE2', () => {
  it.each([
    ['forw.rd', 'forward', 'foward'],
    ['^(?P<own>a|b)+?$', 'abba', 'abc'],
    ['(?i)Forward', 'FORWARD', 'FOREWORD'],
    ['(?sU)a.*b', 'a\nb', 'ba'],
    ['a{b', 'a{b', 'ab'],
    ['x{,2}}]', 'x{,2}}]', 'xx'],
    ['\\-\\ \\:\\"', '- :"', '-:'],
    ['\\Qa.b(\\E+', 'a.b((', 'axb('],
    ['\\Aab\\z', 'ab', 'ab\n'],
    ['^*a', 'ba', 'b'],
    ['[]a]b', ']b', 'b'],
    ['[^]a]b', 'cb', ']b'],
    ['[\\w-.]', '-', '+'],
    ['[a-c-]+$', 'b-', 'd'],
    ['^[[:upper:]_[:^ascii:]]+$', 'A_ä', 'a'],
    ['^\\pL+\\p{Greek}\\p{^Lu}$', 'aβc', 'aβC'],
    ['\\x41\\x{42}\\103\\0', 'ABC\0', 'ABC'],
  ])('%s', (pattern, yes, no) => {
    expect([matches(pattern, yes), matches(pattern, no)]).toEqual([true, false]);
  });

  it.each([
    ['a)', 'unexpected )'],
    ['(a', 'missing )'],
    ['[a', 'missing ]'],
    ['[[:letter:]]', 'unknown class: [:letter:]'],
    ['a\\', 'nothing after \\'],
    ['(a)\\1', 'unknown escape: \\1'],
    ['\\e', 'unknown escape: \\e'],
    ['a(?!b)', 'what is before or after cannot be tested: (?=…), (?!…), (?<=…), (?<!…)'],
    ['(?>a)', 'unknown kind of group: (?…'],
    ['(?<own>a)', 'unknown kind of group: (?…'],
    ['a{1001}', 'more than 1000 repetitions: {1001}'],
    ['((a{20}){2}b){30}', 'more than 1000 repetitions: {30}'],
    ['a**', 'nothing to repeat'],
    ['[b-a]', 'range out of order in character class'],
  ])('%s is refused with the reason', (pattern, reason) => {
    expect(() => expressionFromRe2(pattern)).toThrow(reason);
  });
});
