// The gpumemtrace program that serves or exports the page, for tests. GMT_PROGRAM names it.

import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';

export const PROGRAM = process.env['GMT_PROGRAM'] ?? '';
const ROOT = path.join(import.meta.dirname, '..', '..', '..');

/** '' if the program can serve (`view`) or export the page, otherwise why its tests are skipped. */
export function noPage(verb: 'view' | 'export'): string {
  if (PROGRAM === '' || !existsSync(PROGRAM)) return 'skipped: GMT_PROGRAM does not name a program';
  const { stderr, stdout } = spawnSync(PROGRAM, [verb, '--help'], { encoding: 'utf8' });
  const hasPage = verb === 'view' ? stdout.includes('--no-browser') : stdout.includes('html');
  return hasPage ? '' : `skipped: ${PROGRAM} has no page: ${stderr.split('\n')[0] ?? ''}`;
}

/** Returns what the program prints. */
export function run(folder: string, ...args: readonly string[]): string {
  return execFileSync(PROGRAM, args, { cwd: folder, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1', XDG_CACHE_HOME: folder } });
}

/** Returns the error message with which the program fails. */
export function errorOf(folder: string, ...args: readonly string[]): string {
  const { status, stderr } = spawnSync(PROGRAM, args, { cwd: folder, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1', XDG_CACHE_HOME: folder } });
  if (status === 0) throw new Error(`${args.join(' ')} did not fail`);
  return stderr.trim().replace(/^gpumemtrace: /, '');
}

/** Writes small recordings whose answers are known: tests/golden/cases.py. */
export function writeCases(folder: string): void {
  const code = 'import pathlib, sys; import cases; cases.write(pathlib.Path(sys.argv[1]))';
  execFileSync('python3', ['-c', code, folder], { cwd: path.join(ROOT, 'tests', 'golden'), env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } });
}

/** `gpumemtrace view`, running until it is closed. */
export class ViewProgram {
  private constructor(
    readonly url: string,
    private readonly process: ChildProcess,
  ) {}

  get pid(): number {
    return this.process.pid ?? 0;
  }

  static async open(folder: string, ...files: readonly string[]): Promise<ViewProgram> {
    const child = spawn(PROGRAM, ['view', '--no-browser', '--keep', ...files], {
      cwd: folder,
      env: { ...process.env, XDG_CACHE_HOME: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    // Otherwise it would outlive a failed test, and keep what it inherited open.
    const kill = (): void => void child.kill();
    process.once('exit', kill);
    child.once('exit', () => process.off('exit', kill));
    // Its first line is only the address.
    for await (const line of createInterface({ input: child.stdout })) return new ViewProgram(line.trim(), child);
    throw new Error('gpumemtrace view ended without an address');
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGTERM');
    await ended;
  }
}
