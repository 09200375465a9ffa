// One recording through both transports of the program: the server that `view` starts, and the file
// that `export --format html` writes, read as the page reads it but without a browser.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { DataSource } from '../src/data/data_source';
import { archiveFrom } from '../src/data/embedded/archive';
import { EmbeddedSource } from '../src/data/embedded_source';
import { HttpSource } from '../src/data/http_source';
import { partsIn } from '../src/testing/recordings';
import { run, ViewProgram } from './program';

export class TwoTransports {
  private constructor(
    readonly server: DataSource,
    readonly file: DataSource,
    private readonly program: ViewProgram,
  ) {}

  /** Opens a recording that is in `folder`. */
  static async open(folder: string, recording: string): Promise<TwoTransports> {
    run(folder, 'export', '--format', 'html', recording, '-o', 'run.html');
    const file = new EmbeddedSource(archiveFrom(partsIn(readFileSync(path.join(folder, 'run.html'), 'utf8'))));
    const program = await ViewProgram.open(folder, recording);
    await ready(program.url);
    return new TwoTransports(new HttpSource(program.url), file, program);
  }

  close(): Promise<void> {
    return this.program.close();
  }
}

/** Waits until the server at `base` has loaded its files. */
export async function ready(base: string): Promise<void> {
  for (;;) {
    const answer = await fetch(new URL('api/progress', base));
    const { files } = (await answer.json()) as { files: readonly { state: string; error: string }[] };
    const failed = files.find(({ state }) => state === 'failed');
    if (failed !== undefined) throw new Error(failed.error);
    if (files.every(({ state }) => state === 'ready')) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
