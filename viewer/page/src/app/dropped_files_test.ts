import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { notesOn, quoted, waysToOpen } from './dropped_files';

describe('a name in a command', () => {
  it('stays as it is if a shell needs no quotes', () => {
    expect(quoted('run-1.gmt')).toBe('run-1.gmt');
    expect(quoted('/data/a.b/run.gmt')).toBe('/data/a.b/run.gmt');
  });
  it('passes through a shell unchanged, whatever characters it has', () => {
    for (const name of ['my run.gmt', "it's.gmt", '$(touch x).gmt', '`id`;rm.gmt', 'a\nb.gmt', '*.gmt', '#1', 'ä.gmt', '"', '\\']) {
      expect(execFileSync('sh', ['-c', `printf %s ${quoted(name)}`], { encoding: 'utf8' })).toBe(name);
    }
  });
  it('is never taken for an option', () => {
    expect(quoted('--help')).toBe('./--help');
    expect(quoted('-x y')).toBe("'./-x y'");
  });
});

describe('a dropped file', () => {
  it('is opened by the program, alone or with the recording shown', () => {
    expect(waysToOpen(['new.gmt'], '/data/old.gmt').map((way) => way.command)).toEqual([
      'gpumemtrace view new.gmt',
      'gpumemtrace view /data/old.gmt new.gmt',
      'gpumemtrace export --format html new.gmt -o new.html',
    ]);
    expect(notesOn(['new.gmt', 's.pickle', 'log.jsonl'])).toEqual([]);
  });
  it('is opened together with the others that were dropped', () => {
    expect(waysToOpen(['a.gmt', 'b c.pickle'], '')).toEqual([{ words: 'on one page', command: "gpumemtrace view a.gmt 'b c.pickle'" }]);
  });
  it('that is a page gets no command', () => {
    expect(waysToOpen(['run.html'], '/data/old.gmt')).toEqual([]);
    expect(notesOn(['run.html'])[0]).toContain('a browser tab');
  });
  it('of another name gets a command nevertheless', () => {
    expect(waysToOpen(['core'], '')).toHaveLength(2);
    expect(waysToOpen(['my core'], '')[1]!.command).toContain("'my core' -o 'my core.html'");
    expect(notesOn(['core', 'a', 'b', 'c', 'd'])[0]).toContain('core, a, b and 2 more');
  });
});
