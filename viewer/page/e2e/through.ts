// A page over recordings with one of its two transports: `gpumemtrace view`, or the file of
// `export --format html` without any network.

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { visit, type TestPage } from './page';
import { run, ViewProgram } from './program';

export type Transport = 'view' | 'export';

/**
 * Opens the recordings `names` of `folder`, passes the page to `use` when they are loaded, and
 * closes it. `address`: the fragment of the page's address.
 */
export async function through(
  transport: Transport,
  browser: Browser,
  folder: string,
  names: readonly string[],
  use: (test: TestPage) => Promise<void>,
  address = '',
): Promise<void> {
  const files = names.map((name) => `${name}.jsonl`);
  const view = transport === 'view' ? await ViewProgram.open(folder, ...files) : null;
  let url = view?.url ?? '';
  if (view === null) {
    const out = `${names.join('_')}.html`;
    run(folder, 'export', '--format', 'html', ...files, '-o', out, '--force');
    url = pathToFileURL(path.join(folder, out)).href;
  }
  try {
    await visit(browser, url + address, use);
  } finally {
    await view?.close();
  }
}
