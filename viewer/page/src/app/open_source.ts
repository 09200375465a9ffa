// Which door the page came through.

import type { DataSource } from '../data/data_source';
import { archiveOf } from '../data/embedded/archive';
import { EmbeddedSource } from '../data/embedded_source';
import { HttpSource } from '../data/http_source';

export async function openSource(): Promise<DataSource> {
  // Known when the page is built: nothing of it is left in the page that is shipped.
  if (import.meta.env.MODE === 'generated' || import.meta.env.DEV) {
    const { GeneratedSource } = await import('../data/generated_source');
    return new GeneratedSource();
  }
  const archive = archiveOf(document);
  if (archive !== null) return new EmbeddedSource(archive);
  return new HttpSource(document.baseURI.replace(/[?#].*$/, ''));
}
