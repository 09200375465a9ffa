// Selects the transport of the page's data: a standalone file, or the server.

import type { DataSource } from '../data/data_source';
import { archiveFrom, partsOf } from '../data/embedded/archive';
import EmbeddedWorker from '../data/embedded/worker?worker&inline';
import { EmbeddedSource } from '../data/embedded_source';
import { HttpSource } from '../data/http_source';
import { startWorker, WorkerSource } from '../data/worker_source';

export async function openSource(): Promise<DataSource> {
  const parts = partsOf(document);
  if (parts !== null) {
    const worker = await startWorker(() => new EmbeddedWorker());
    return worker === null ? new EmbeddedSource(archiveFrom(parts)) : new WorkerSource(worker, parts);
  }
  return new HttpSource(document.baseURI.replace(/[?#].*$/, ''));
}
