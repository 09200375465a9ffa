// The parts of a mailed file: gzipped bytes with a name, as base64 in the page, several elements for a
// long one (viewer/html/mailed_html.h). They leave the page when they are taken: a browser would keep
// their text beside what was made of it.

import { DataError } from '../data_source';

const SELECTOR = 'script[data-gmt]';

export interface Archive {
  has(name: string): boolean;
  /** The inflated bytes; each part can be had once. */
  take(name: string): Promise<ArrayBuffer>;
}

/** Their base64 by name; null: the page has no data in it, so that a server has them. */
export function partsOf(root: ParentNode): Map<string, readonly string[]> | null {
  const parts = new Map<string, readonly string[]>();
  for (const element of root.querySelectorAll<HTMLElement>(SELECTOR)) {
    const name = element.dataset['gmt'] ?? '';
    parts.set(name, [...(parts.get(name) ?? []), element.textContent]);
    element.remove();
  }
  return parts.size === 0 ? null : parts;
}

/** `parts`: base64, by name. */
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
  return new DataError(`This file is damaged: ${what}. Ask whoever sent it for another copy.`);
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
