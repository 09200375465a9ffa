// Which door the page came through.

import type { DataSource } from '../data/data_source';
import { archiveFrom, partsOf } from '../data/embedded/archive';
import EmbeddedWorker from '../data/embedded/worker?worker&inline';
import { EmbeddedSource } from '../data/embedded_source';
import { HttpSource } from '../data/http_source';
import { startWorker, WorkerSource } from '../data/worker_source';

export async function openSource(): Promise<DataSource> {
  // Known when the page is built: nothing of it is left in the page that is shipped.
  if (import.meta.env.MODE === 'generated' || import.meta.env.DEV) {
    const { GeneratedSource } = await import('../data/generated_source');
    return new GeneratedSource();
  }
  const parts = partsOf(document);
  if (parts !== null) {
    const worker = await startWorker(() => new EmbeddedWorker());
    return worker === null ? new EmbeddedSource(archiveFrom(parts)) : new WorkerSource(worker, parts);
  }
  return new HttpSource(document.baseURI.replace(/[?#].*$/, ''));
}
