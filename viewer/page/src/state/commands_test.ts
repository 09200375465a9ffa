import { expect, it } from 'vitest';
import type { KeyPress } from '../base/hotkeys';
import { Commands, type Command } from './commands';

const press = (letter: string): KeyPress => ({ key: letter, code: `Key${letter.toUpperCase()}`, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false });

function command(id: string, done: string[], change: Partial<Command> = {}): Command {
  return { id, title: id, group: 'g', hotkeys: ['W'], run: () => done.push(id), ...change };
}

it('gives a key to the view registered last, and returns it when that view is removed', () => {
  const done: string[] = [];
  const commands = new Commands();
  commands.register([command('page', done)]);
  const remove = commands.register([command('view', done)]);
  commands.find(press('w'))?.run();
  remove();
  remove();
  commands.find(press('w'))?.run();
  expect(done).toEqual(['view', 'page']);
});

it('skips commands that are disabled', () => {
  const done: string[] = [];
  const commands = new Commands();
  commands.register([command('page', done), command('never', done, { hotkeys: ['A'], enabled: () => false })]);
  commands.register([command('view', done, { enabled: () => false })]);
  commands.find(press('w'))?.run();
  expect(done).toEqual(['page']);
  expect(commands.find(press('a'))).toBeNull();
  expect([commands.run('never'), commands.run('nothing'), commands.run('page')]).toEqual([false, false, true]);
});

it('lists one command per id', () => {
  const commands = new Commands();
  commands.register([command('same', [], { title: 'old' })]);
  commands.register([command('same', [], { title: 'new' })]);
  expect(commands.all().map((each) => each.title)).toEqual(['new']);
});
