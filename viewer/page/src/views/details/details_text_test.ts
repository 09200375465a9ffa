import { describe, expect, it } from 'vitest';
import { NEVER, NO_ROW, type BlockDetails, type Frame } from '../../data/protocol';
import { recordedSource } from '../../testing/recordings';
import { blockFacts, blockMarkdown, blockText, mainFrame, groupFrames, lifeFacts, neighbourWords, stackMarkdown } from './details_text';

const frame = (name: string, kind: Frame['kind'], line = 7): Frame => ({ function: name, file: `/src/${name}.py`, line, library: '', kind });

async function block(change: Partial<BlockDetails> = {}): Promise<BlockDetails> {
  return { ...(await recordedSource().block(0, 30)), ...change };
}

describe('frames', () => {
  it('that are consecutive noise form one group', () => {
    const frames = [frame('a', 'folded'), frame('b', 'folded'), frame('c', 'user'), frame('d', 'folded')];
    expect(groupFrames(frames).map((group) => (group.kind === 'noise' ? group.frames.length : group.frame.function))).toEqual([2, 'c', 1]);
  });
  it("start with the program's own, otherwise with any that has a line and is not noise", () => {
    expect(mainFrame([frame('a', 'folded'), frame('b', 'native'), frame('c', 'user')])).toBe(2);
    expect(mainFrame([frame('a', 'folded'), frame('b', 'native'), frame('c', 'user', 0)])).toBe(1);
    expect(mainFrame([])).toBe(-1);
  });
});

it('the facts of a block count the blocks of its stack', async () => {
  const wordsFor = async (blocks: number) => {
    const facts = blockFacts(await block({ same_stack: { blocks, peak_bytes: 1024, live_bytes: 0 } }));
    return Object.fromEntries(facts)['from this stack'];
  };
  expect(await wordsFor(1)).toBe('1 block, peak 1.00 KiB, 0 B live when it was allocated');
  expect(await wordsFor(2)).toMatch(/^2 blocks, /);
});

describe('the lifetime of a block', () => {
  const names = (facts: readonly (readonly [string, string])[]): string[] => facts.map(([name]) => name);
  it('ends when it is freed', async () => {
    const facts = lifeFacts(await block({ birth: 3, birth_ns: 1e6, death: 9, death_ns: 3e6, completed: 9, completed_ns: 3e6 }));
    expect(names(facts)).toEqual(['allocated', 'freed', 'held']);
    expect(facts[2]![1]).toBe('2.00 ms');
  });
  it('continues while another stream holds it', async () => {
    const facts = lifeFacts(await block({ birth: 3, birth_ns: 1e6, death: 9, death_ns: 3e6, completed: 12, completed_ns: 4.5e6 }));
    expect(facts[3]![1]).toContain('held 1.50 ms longer by another stream');
    expect(lifeFacts(await block({ death: 9, death_ns: 3e6, completed: NEVER, completed_ns: null }))[3]![1]).toContain('never');
  });
  it('may have no begin and no end', async () => {
    const facts = lifeFacts(await block({ birth: 0, death: NEVER, death_ns: null, completed: NEVER, completed_ns: null }));
    expect(facts).toEqual([['allocated', 'before the recording began'], ['freed', 'never']]);
  });
});

describe('a block as text', () => {
  it('shows what rounding added', async () => {
    expect(blockFacts(await block({ size: 2048, requested: 1848 })).find(([name]) => name === 'requested')![1]).toBe('1,848 bytes, 200 B added by rounding');
    expect(blockFacts(await block({ requested: null })).some(([name]) => name === 'requested')).toBe(false);
  });
  it('shows why it was alive and what tensor it is, if known', async () => {
    const facts = blockFacts(await block({ alive: 'a parameter', tensor: 'float32 [8, 4]' }));
    expect(facts.find(([name]) => name === 'alive as')![1]).toBe('a parameter');
    expect(facts.find(([name]) => name === 'tensor')![1]).toBe('float32 [8, 4]');
    expect(blockFacts(await block({ alive: '', tensor: '' })).some(([name]) => name === 'alive as' || name === 'tensor')).toBe(false);
  });
  it('names its neighbours', () => {
    expect(neighbourWords(null)).toContain('edge');
    expect(neighbourWords({ row: NO_ROW, size: 1024, label: '' })).toBe('free, 1.00 KiB');
    expect(neighbourWords({ row: 4, size: 1024, label: 'f.py:1 g' })).toBe('1.00 KiB  f.py:1 g');
  });
  it('contains all stacks', async () => {
    const one = await block();
    const text = blockText({ ...one, forward_stack: one.stack, free_stack: one.stack });
    for (const title of ['allocated at:', 'forward call:', 'freed at:']) expect(text).toContain(title);
    expect(text).not.toMatch(/undefined|NaN/);
  });
  it('is a Markdown table that no name can break', async () => {
    const one = await block({ thread: 'a|b' });
    expect(blockMarkdown(one)).toContain('| thread | a\\|b |');
    const fenced = stackMarkdown({ stack: 1, key: 1, label: '', site: '', backward_of: '', line: '', frames: [frame('x```y', 'user')] });
    expect([fenced[0], fenced.at(-1)]).toEqual(['````', '````']);
  });
});
