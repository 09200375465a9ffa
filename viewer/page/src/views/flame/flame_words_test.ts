import { expect, it } from 'vitest';
import type { FlameTree } from '../../data/protocol';
import { describe as words, findMatches, frameLabel, matcher, matchWords } from './flame_words';

const TREE: FlameTree = {
  parent: Uint32Array.of(0, 0, 1, 1, 0),
  bytes: Float64Array.of(4096, 3072, 1024, 1024, 1024),
  blocks: Float64Array.of(4, 3, 1, 1, 1),
  before: new Float64Array(0),
  category: Uint8Array.of(2, 1, 1, 1, 2),
  category_bytes: Float64Array.of(2560, 2048, 1024, 1024, 1024),
  name: Uint32Array.of(0, 1, 2, 1, 3),
  names: ['', 'forward\tmodel.py:88\tuser', 'at::matmul\t\tnative', 'main\ttrain.py:3\tuser'],
  total: 4096,
};

it('names a frame with its file and line', () => {
  expect(frameLabel(TREE, 1)).toBe('forward (model.py:88)');
  expect(frameLabel(TREE, 2)).toBe('at::matmul');
  expect(frameLabel(TREE, 0)).toBe('all');
});

it('shows bytes, share and blocks', () => {
  expect(words(TREE, 1, false)).toBe('forward (model.py:88): 3.00 KiB, 75 % of 4.00 KiB, 3 blocks');
  expect(words(TREE, 0, false)).toBe('all: 4.00 KiB, 4 blocks');
});

it('shows the category that has most of a frame', () => {
  const categories = ['unknown', 'parameters', 'optimizer_state'];
  expect(words(TREE, 1, false, categories)).toBe('forward (model.py:88): 3.00 KiB, 75 % of 4.00 KiB, 3 blocks, 67 % of it parameters');
  expect(words(TREE, 4, false, categories)).toMatch(/, 1 block, optimizer state$/);
});

it('shows a change between two moments', () => {
  const tree = { ...TREE, before: Float64Array.of(2048, 4096, 0, 0, 0) };
  expect(words(tree, 1, false)).toBe('forward (model.py:88): -1.00 KiB, from 4.00 KiB to 3.00 KiB');
  expect(words(TREE, 1, true)).toBe('forward (model.py:88): +3.00 KiB of +4.00 KiB');
});

it('counts the bytes of a match within a match once', () => {
  const matches = findMatches(TREE, 'FORWARD')!;
  expect([...matches.nodes]).toEqual([0, 1, 0, 1, 0]);
  expect(matchWords(TREE, 'FORWARD', matches)).toBe('2 frames match: 3.00 KiB, 75 %');
  expect(matchWords(TREE, 'f', { ...matches, count: 1 })).toMatch(/^1 frame matches: /);
});

it('searches by regular expression between slashes', () => {
  expect([...findMatches(TREE, '/^main\\b|matmul/')!.nodes]).toEqual([0, 0, 1, 0, 1]);
  expect(matcher('/(/')).toBeNull();
  expect(matchWords(TREE, '/(/', findMatches(TREE, '/(/'))).toBe('Invalid regular expression.');
  expect(matchWords(TREE, 'zzz', findMatches(TREE, 'zzz'))).toBe('No frame matches.');
  expect(findMatches(TREE, '')).toBeNull();
});
