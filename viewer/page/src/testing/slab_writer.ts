// The inverse of slab.ts, for tests.

import { SLAB_MAGIC, SLAB_VERSION, type Column, type ColumnType } from '../data/slab';

export function encodeSlab(kind: string, fields: Readonly<Record<string, unknown>>, arrays: ReadonlyMap<string, Column>): ArrayBuffer {
  const described = [...arrays].map(([name, array]) => ({ name, type: typeOf(array), count: array.length }));
  const header = new TextEncoder().encode(JSON.stringify({ kind, fields, arrays: described }));
  const begin = aligned(12 + header.length);
  let size = begin;
  for (const array of arrays.values()) size = aligned(size + array.byteLength);
  const buffer = new ArrayBuffer(size);
  const view = new DataView(buffer);
  view.setUint32(0, SLAB_MAGIC, true);
  view.setUint16(4, SLAB_VERSION, true);
  view.setUint32(8, header.length, true);
  const bytes = new Uint8Array(buffer);
  bytes.set(header, 12);
  let offset = begin;
  for (const array of arrays.values()) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), offset);
    offset = aligned(offset + array.byteLength);
  }
  return buffer;
}

function typeOf(array: Column): ColumnType {
  if (array instanceof Uint8Array) return 'u8';
  if (array instanceof Uint16Array) return 'u16';
  return array instanceof Uint32Array ? 'u32' : 'f64';
}

function aligned(offset: number): number {
  return Math.ceil(offset / 8) * 8;
}
