// Builds the page with two recordings (src/testing/recordings.html) once per run, for tests that need
// no gpumemtrace program.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build } from 'vite';

export default async function setup(): Promise<() => void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'gmt-page-'));
  process.env['GMT_PAGE_OUT'] = folder;
  await build({ root: path.join(import.meta.dirname, '..'), mode: 'recorded', logLevel: 'warn', build: { outDir: folder } });
  process.env['GMT_RECORDED_PAGE'] = path.join(folder, 'index.html');
  return () => rmSync(folder, { recursive: true });
}
