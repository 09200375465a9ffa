// Selects the transport of the page's data: test data, a standalone file, or the server.

import type { DataSource } from '../data/data_source';
import { archiveFrom, partsOf } from '../data/embedded/archive';
import EmbeddedWorker from '../data/embedded/worker?worker&inline';
import { EmbeddedSource } from '../data/embedded_source';
import { HttpSource } from '../data/http_source';
import { startWorker, WorkerSource } from '../data/worker_source';

export async function openSource(): Promise<DataSource> {
  // Known when the page is built: the shipped page contains none of it.
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
