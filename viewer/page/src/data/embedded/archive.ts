// The parts of a standalone file: named gzipped bytes, as base64 in the page, in several elements
// if long (viewer/html/standalone_html.h). An element is removed from the page when it is read,
// because the browser would keep its text in memory beside the decoded data.

import { DataError } from '../data_source';

const SELECTOR = 'script[data-gmt]';

export interface Archive {
  has(name: string): boolean;
  /** Returns the inflated bytes. Each part can be taken once. */
  take(name: string): Promise<ArrayBuffer>;
}

/**
 * Returns the base64 parts by name, or null if the page has no data, so that a server must have it.
 */
export function partsOf(root: ParentNode): Map<string, readonly string[]> | null {
  const parts = new Map<string, readonly string[]>();
  for (const element of root.querySelectorAll<HTMLElement>(SELECTOR)) {
    const name = element.dataset['gmt'] ?? '';
    parts.set(name, [...(parts.get(name) ?? []), element.textContent]);
    element.remove();
  }
  return parts.size === 0 ? null : parts;
}

/** Makes an archive of base64 parts by name. */
export function archiveFrom(parts: Map<string, readonly string[]>): Archive {
  return {
    has: (name) => parts.has(name),
    take: async (name) => {
      const texts = parts.get(name);
      if (texts === undefined) throw damaged(`it lacks ${name}`);
      parts.delete(name);
      try {
        return await inflate(texts.map(bytesOf));
      } catch {
        throw damaged(`${name} cannot be read`);
      }
    },
  };
}

function damaged(what: string): DataError {
  return new DataError(`This file is damaged: ${what}. Ask the sender for another copy.`);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflate(pieces: readonly Uint8Array<ArrayBuffer>[]): Promise<ArrayBuffer> {
  const stream = new Blob([...pieces]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}
