import { expect, it } from 'vitest';
import type { Command } from '../state/commands';
import { optionsOf } from './command_palette';
import type { Entry } from './search_entries';

const command = (id: string, title: string, change: Partial<Command> = {}): Command => ({ id, title, group: 'g', hotkeys: [], run: () => undefined, ...change });
const entry = (id: string): Entry => ({ id, kind: 'function', title: id, run: () => undefined });

it('lists commands that contain the text, then what was found, then similar commands', () => {
  const commands = [command('similar', 'Force without a dark edge'), command('exact', 'Go forward'), command('off', 'forward', { enabled: () => false })];
  expect(optionsOf('forw', commands, [entry('Block.forward')]).map(({ id }) => id)).toEqual(['exact', 'Block.forward', 'similar']);
});

it('lists all commands before a letter is typed', () => {
  expect(optionsOf('', [command('a', 'A'), command('page.palette', 'P')], []).map(({ id }) => id)).toEqual(['a']);
});
