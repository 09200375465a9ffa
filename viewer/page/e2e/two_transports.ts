// One recording through both transports of the program: the server that `view` starts, and the file
// that `export --format html` writes, read as the page reads it but without a browser.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { DataSource } from '../src/data/data_source';
import { archiveFrom } from '../src/data/embedded/archive';
import { EmbeddedSource } from '../src/data/embedded_source';
import { HttpSource } from '../src/data/http_source';
import { partsIn } from '../src/testing/recordings';

const PROGRAM = process.env['GMT_PROGRAM'] ?? '';

/** '' if the program exists, otherwise why these tests are skipped. */
export const noProgram = existsSync(PROGRAM) ? '' : 'skipped: name the built gpumemtrace in GMT_PROGRAM';
if (noProgram !== '') console.log(noProgram);

export function run(...args: readonly string[]): string {
  return execFileSync(PROGRAM, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export class TwoTransports {
  private constructor(
    readonly server: DataSource,
    readonly file: DataSource,
    readonly html: string,
    private readonly process: ChildProcess,
    private readonly folder: string,
  ) {}

  static async open(recordings: readonly string[], ...exportOptions: readonly string[]): Promise<TwoTransports> {
    const folder = mkdtempSync(path.join(tmpdir(), 'gmt-transports-'));
    const html = path.join(folder, 'run.html');
    run('export', '--format', 'html', ...recordings, '-o', html, ...exportOptions);
    const process = spawn(PROGRAM, ['view', '--no-browser', '--keep', ...recordings], { stdio: ['ignore', 'pipe', 'inherit'] });
    const base = await new Promise<string>((resolve, reject) => {
      createInterface(process.stdout).once('line', resolve);
      process.once('exit', (code) => reject(new Error(`gpumemtrace view ended with ${String(code)}`)));
    });
    const server = new HttpSource(base);
    await ready(base);
    const file = new EmbeddedSource(archiveFrom(partsIn(readFileSync(html, 'utf8'))));
    return new TwoTransports(server, file, html, process, folder);
  }

  close(): void {
    this.process.kill('SIGINT');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function ready(base: string): Promise<void> {
  for (;;) {
    const answer = await fetch(new URL('api/progress', base));
    const { files } = (await answer.json()) as { files: readonly { state: string; error: string }[] };
    const failed = files.find(({ state }) => state === 'failed');
    if (failed !== undefined) throw new Error(failed.error);
    if (files.every(({ state }) => state === 'ready')) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
