// The ranks of a job on the simulated device, each recorded to a file of its own. They allocate and
// free what a test requests, and report what they held at which time.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { PROGRAM } from './program';

const BUILD = path.resolve(path.dirname(PROGRAM), '..');
const TARGET = [path.join(BUILD, 'simcuda', 'with-simcuda'), path.join(BUILD, 'tests', 'programs', 'memory_commands')];

/** '' if a program can be recorded here, otherwise why these tests are skipped. */
export const noRanks = TARGET.every((file) => existsSync(file)) ? '' : `skipped: ${TARGET.join(' or ')} is not built`;

const REST_MS = 20;

/** From `from` to `to`, in ns since 1970, rank i held bytes[i]. */
export interface Rest {
  readonly from: bigint;
  readonly to: bigint;
  readonly bytes: readonly number[];
}

class Rank {
  held = 0;
  private readonly addresses: string[] = [];
  private readonly lines: AsyncIterator<string>;
  private readonly ended: Promise<unknown>;

  constructor(private readonly child: ChildProcess) {
    this.lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    this.ended = new Promise((resolve) => child.once('exit', resolve));
    process.once('exit', () => child.kill());
  }

  async answer(): Promise<readonly string[]> {
    const line = await this.lines.next();
    if (line.done === true) throw new Error('a rank has ended');
    return line.value.split(' ');
  }
  /** Allocates; returns the time after it. */
  async take(bytes: number): Promise<bigint> {
    this.child.stdin!.write(`take ${bytes}\n`);
    const [, address, ns] = await this.answer();
    this.addresses.push(`${address!} ${bytes}`);
    this.held += bytes;
    return BigInt(ns!);
  }
  /** Frees what was allocated last; returns the time after it. */
  async give(): Promise<bigint> {
    const [address, bytes] = this.addresses.pop()!.split(' ');
    this.child.stdin!.write(`give ${address!}\n`);
    const [, ns] = await this.answer();
    this.held -= Number(bytes);
    return BigInt(ns!);
  }
  async leave(): Promise<void> {
    this.child.stdin!.write('leave 0\n');
    await this.ended;
  }
}

/**
 * Records ranks to FOLDER/r0.gmt, r1.gmt ... all of which run until the last has begun. In each
 * round rank i allocates the i-th number of bytes, or frees what it allocated last if that is 0.
 * Returns what all held after each round.
 */
export async function recordRanks(folder: string, rounds: readonly (readonly number[])[]): Promise<Rest[]> {
  mkdirSync(path.join(folder, 'sessions'), { mode: 0o700, recursive: true });
  const ranks = rounds[0]!.map((_, rank) => {
    const words = ['run', '--quiet', '--exit-wait', '100s', '-o', `r${rank}.gmt`, '--', ...TARGET];
    const env = { ...process.env, RANK: String(rank), WORLD_SIZE: String(rounds[0]!.length), GPUMEMTRACE_DIR: path.join(folder, 'sessions'), XDG_CACHE_HOME: folder };
    return new Rank(spawn(PROGRAM, words, { cwd: folder, env, stdio: ['pipe', 'pipe', 'inherit'] }));
  });
  await Promise.all(ranks.map((rank) => rank.answer())); // 'ready PID'
  const rests: Rest[] = [];
  for (const round of rounds) {
    const done = await Promise.all(ranks.map((rank, i) => (round[i] === 0 ? rank.give() : rank.take(round[i]!))));
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
    const from = done.reduce((a, b) => (a > b ? a : b));
    rests.push({ from, to: BigInt(Date.now()) * 1_000_000n, bytes: ranks.map(({ held }) => held) });
  }
  await Promise.all(ranks.map((rank) => rank.leave()));
  return rests;
}
