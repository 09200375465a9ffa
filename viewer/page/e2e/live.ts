// A recorded program on the simulated device that executes the commands of a test, and the page
// that follows it.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { PROGRAM } from './program';

const BUILD = path.resolve(path.dirname(PROGRAM), '..');
const SIMULATED = path.join(BUILD, 'simcuda', 'with-simcuda');
const TARGET = path.join(BUILD, 'tests', 'programs', 'memory_commands');
export const HANG_MS = 120_000;

/** '' if a program can be recorded here, otherwise why these tests are skipped. */
export const noLive = existsSync(TARGET) && existsSync(SIMULATED) ? '' : `skipped: ${TARGET} is not built`;

function environmentOf(folder: string): NodeJS.ProcessEnv {
  return { ...process.env, GPUMEMTRACE_DIR: path.join(folder, 'sessions'), XDG_CACHE_HOME: folder, NO_COLOR: '1' };
}

export interface Done {
  readonly address: string;
  readonly ms: number; // on the clock of Date.now()
}

export class Recorded {
  private readonly lines: AsyncIterator<string>;

  private constructor(
    readonly folder: string,
    private readonly child: ChildProcess,
    readonly reader: Interface,
    lines: AsyncIterator<string>,
    readonly pid: number,
  ) {
    this.lines = lines;
  }

  static async start(folder: string, options = ''): Promise<Recorded> {
    mkdirSync(path.join(folder, 'sessions'), { mode: 0o700, recursive: true });
    const library = execFileSync(PROGRAM, ['preload-path'], { encoding: 'utf8' }).trim();
    const child = spawn(SIMULATED, [TARGET], {
      cwd: folder,
      env: { ...environmentOf(folder), LD_PRELOAD: library, GPUMEMTRACE: `quiet,output=${folder}/run.gmt${options}` },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    process.once('exit', () => child.kill('SIGKILL'));
    const reader = createInterface({ input: child.stdout });
    const lines = reader[Symbol.asyncIterator]();
    const first = await lines.next();
    const pid = Number(/^ready (\d+)/.exec(first.value as string)?.[1]);
    return new Recorded(folder, child, reader, lines, pid);
  }

  private async say(line: string): Promise<readonly string[]> {
    this.child.stdin!.write(`${line}\n`);
    const answer = await this.lines.next();
    if (answer.done === true) throw new Error(`the program ended at: ${line}`);
    return answer.value.split(' ');
  }
  async take(bytes: number): Promise<Done> {
    const [, address, ns] = await this.say(`take ${bytes}`);
    return { address: address!, ms: Number(BigInt(ns!) / 1000n) / 1000 };
  }
  async give({ address }: Done): Promise<void> {
    await this.say(`give ${address}`);
  }
  async pass(count: number, bytes: number): Promise<void> {
    await this.say(`pass ${count} ${bytes}`);
  }

  async leave(code: number): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.stdin!.write(`leave ${code}\n`);
    await ended;
  }
  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await ended;
  }

  /** Returns the process id of the collector that records it, or 0 if there is none. */
  collector(): number {
    const out = execFileSync(PROGRAM, ['list', '--json'], { encoding: 'utf8', env: environmentOf(this.folder) });
    const { sessions } = JSON.parse(out) as { sessions: { pid: number; collector_pid: number | null }[] };
    return sessions.find((each) => each.pid === this.pid)?.collector_pid ?? 0;
  }
}

/** `gpumemtrace view --live`, running until it is closed. */
export class LiveViewProgram {
  private constructor(
    readonly url: string,
    private readonly child: ChildProcess,
  ) {}

  static async open(folder: string, ...words: readonly string[]): Promise<LiveViewProgram> {
    const child = spawn(PROGRAM, ['view', '--no-browser', '--keep', '--live', ...words], {
      cwd: folder, env: environmentOf(folder), stdio: ['ignore', 'pipe', 'inherit'],
    });
    process.once('exit', () => child.kill());
    for await (const line of createInterface({ input: child.stdout })) return new LiveViewProgram(line.trim(), child);
    throw new Error('gpumemtrace view --live ended without an address');
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await ended;
  }
}
