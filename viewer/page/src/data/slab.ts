// Decodes slabs, named arrays of numbers from the server (viewer/README.md, "Slabs"). Arrays are
// used in place, never copied. Invalid input gives a DataError, never a wrong number.

import { DataError } from './data_source';
import type * as p from './protocol';

export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;
export type ColumnType = 'u8' | 'u16' | 'u32' | 'f64';

export const SLAB_VERSION = 1;
export const SLAB_MAGIC = 0x56544d47; // "GMTV"

export interface Slab {
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly arrays: ReadonlyMap<string, Column>;
}

export function decodeSlab(buffer: ArrayBuffer): Slab {
  if (buffer.byteLength < 12) throw damaged('it is too short');
  const view = new DataView(buffer);
  if (view.getUint32(0, true) !== SLAB_MAGIC) throw damaged('it has the wrong signature');
  const version = view.getUint16(4, true);
  if (version !== SLAB_VERSION) {
    throw new DataError(`The data has version ${version}, but this page reads version ${SLAB_VERSION}. Reload the page.`);
  }
  const length = view.getUint32(8, true);
  if (12 + length > buffer.byteLength) throw damaged('its header is cut off');
  const header = parseHeader(new TextDecoder().decode(new Uint8Array(buffer, 12, length)));
  const arrays = new Map<string, Column>();
  let offset = aligned(12 + length);
  for (const { name, type, count } of header.arrays) {
    const bytes = count * SIZES[type];
    if (offset + bytes > buffer.byteLength) throw damaged(`its array ${name} is cut off`);
    arrays.set(name, columnAt(buffer, type, offset, count));
    offset = aligned(offset + bytes);
  }
  return { kind: header.kind, fields: header.fields, arrays };
}

export function curveTile(slab: Slab, window: p.Window): p.CurveTile {
  expectKind(slab, 'curve');
  const series = new Map<p.Counted, p.CurveSeries>();
  const samples = new Map<p.Sampled, p.SampledSeries>();
  for (const name of ['live', 'reserved'] as const) {
    if (!slab.arrays.has(`${name}.mid`)) continue;
    const part = (which: string): Float64Array => f64(slab, `${name}.${which}`, window.columns);
    series.set(name, { min: part('min'), max: part('max'), mid: part('mid') });
  }
  for (const name of ['driver_used', 'process_used'] as const) {
    if (!slab.arrays.has(`${name}.value`)) continue;
    samples.set(name, { value: f64(slab, `${name}.value`, window.columns), ns: f64(slab, `${name}.ns`, window.columns) });
  }
  const categories = slab.arrays.get('categories') ?? new Float64Array(0);
  if (!(categories instanceof Float64Array) || categories.length % window.columns !== 0) throw damaged('its categories do not fit');
  return { window, event: u32(slab, 'event', window.columns), peak: u32(slab, 'peak', window.columns), ns: f64(slab, 'ns', window.columns), series, samples, categories };
}

export function passingCurve(slab: Slab, query: p.PassingQuery): p.PassingCurve {
  expectKind(slab, 'passing');
  return { query, live: f64(slab, 'live', query.columns) };
}

export function predictedCurve(slab: Slab, query: p.PredictedQuery): p.PredictedCurve {
  expectKind(slab, 'predicted');
  return {
    query,
    reserved: f64(slab, 'reserved', query.columns),
    peak_bytes: numberField(slab, 'peak_bytes'),
    retries: numberField(slab, 'retries'),
    failure: slab.fields['failure'] === null ? null : numberField(slab, 'failure'),
  };
}

export function blockTile(slab: Slab, query: p.BlockQuery): p.BlockTile {
  expectKind(slab, 'blocks');
  const row = u32(slab, 'row');
  const items = row.length;
  const runBegin = u32(slab, 'run_begin', items + 1);
  const runColumn = u16(slab, 'run_column', runBegin[items]);
  for (let i = 0; i < items; ++i) if (runBegin[i]! > runBegin[i + 1]!) throw damaged('its runs go backwards');
  const first = u16(slab, 'first', items);
  const last = u16(slab, 'last', items);
  for (let i = 0; i < items; ++i) if (first[i]! > last[i]! || last[i]! > query.columns) throw damaged('its columns do not fit');
  return {
    query,
    row,
    start: f64(slab, 'start', items),
    end: f64(slab, 'end', items),
    first,
    last,
    size: f64(slab, 'size', items),
    place: f64(slab, 'place', items),
    stack: u32(slab, 'stack', items),
    forward_stack: u32(slab, 'forward_stack', items),
    key: u32(slab, 'key', items),
    category: u8(slab, 'category', items),
    stream: u16(slab, 'stream', items),
    thread: u16(slab, 'thread', items),
    role: u8(slab, 'role', items),
    dtype: u16(slab, 'dtype', items),
    flags: u8(slab, 'flags', items),
    run_begin: runBegin,
    run_column: runColumn,
    run_bytes: f64(slab, 'run_bytes', runColumn.length),
    hidden: numberField(slab, 'hidden'),
    spaces: spacesOf(slab.fields['spaces']),
  };
}

export function flameTree(slab: Slab): p.FlameTree {
  expectKind(slab, 'flame');
  const parent = u32(slab, 'parent');
  const nodes = parent.length;
  const names = slab.fields['names'];
  if (!Array.isArray(names)) throw damaged('it has no names');
  const name = u32(slab, 'name', nodes);
  for (let i = 0; i < nodes; ++i) {
    if (name[i]! >= names.length || (i > 0 && parent[i]! >= i)) throw damaged('it is not a tree');
  }
  const [before, category] = [slab.arrays.get('before'), slab.arrays.get('category')];
  const hasCategories = category !== undefined && category.length > 0;
  return {
    parent,
    bytes: f64(slab, 'bytes', nodes),
    blocks: f64(slab, 'blocks', nodes),
    before: before === undefined || before.length === 0 ? new Float64Array(0) : f64(slab, 'before', nodes),
    category: hasCategories ? u8(slab, 'category', nodes) : new Uint8Array(0),
    category_bytes: hasCategories ? f64(slab, 'category_bytes', nodes) : new Float64Array(0),
    name,
    names: names.map(String),
    total: numberField(slab, 'total'),
  };
}

// -- Parts ---------------------------------------------------------------------------------------

const SIZES = { u8: 1, u16: 2, u32: 4, f64: 8 } as const;

function aligned(offset: number): number {
  return Math.ceil(offset / 8) * 8;
}

function columnAt(buffer: ArrayBuffer, type: ColumnType, offset: number, count: number): Column {
  switch (type) {
    case 'u8':
      return new Uint8Array(buffer, offset, count);
    case 'u16':
      return new Uint16Array(buffer, offset, count);
    case 'u32':
      return new Uint32Array(buffer, offset, count);
    case 'f64':
      return new Float64Array(buffer, offset, count);
  }
}

interface Header {
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly arrays: readonly { readonly name: string; readonly type: ColumnType; readonly count: number }[];
}

function parseHeader(text: string): Header {
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch {
    throw damaged('its header is not JSON');
  }
  if (!isRecord(header) || typeof header['kind'] !== 'string' || !Array.isArray(header['arrays'])) {
    throw damaged('its header lacks a part');
  }
  const arrays = header['arrays'].map((array: unknown) => {
    if (!isRecord(array)) throw damaged('an array is not described');
    const { name, type, count } = array;
    if (typeof name !== 'string' || !isType(type) || typeof count !== 'number' || !Number.isInteger(count) || count < 0) {
      throw damaged('an array is not described');
    }
    return { name, type, count };
  });
  return { kind: header['kind'], fields: isRecord(header['fields']) ? header['fields'] : {}, arrays };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isType(value: unknown): value is ColumnType {
  return typeof value === 'string' && value in SIZES;
}

function expectKind(slab: Slab, kind: string): void {
  if (slab.kind !== kind) throw damaged(`it is of kind ${slab.kind}, not ${kind}`);
}

function f64(slab: Slab, name: string, count?: number): Float64Array {
  return expectArray(slab, name, Float64Array, count);
}
function u32(slab: Slab, name: string, count?: number): Uint32Array {
  return expectArray(slab, name, Uint32Array, count);
}
function u16(slab: Slab, name: string, count?: number): Uint16Array {
  return expectArray(slab, name, Uint16Array, count);
}
function u8(slab: Slab, name: string, count?: number): Uint8Array {
  return expectArray(slab, name, Uint8Array, count);
}

function expectArray<T extends Column>(slab: Slab, name: string, type: abstract new (...args: never[]) => T, count?: number): T {
  const array = slab.arrays.get(name);
  if (!(array instanceof type)) throw damaged(`it lacks ${name}`);
  if (count !== undefined && array.length !== count) throw damaged(`${name} has ${array.length} entries instead of ${count}`);
  return array;
}

function numberField(slab: Slab, name: string): number {
  const value = slab.fields[name];
  if (typeof value !== 'number') throw damaged(`it lacks ${name}`);
  return value;
}

// JSON has no Infinity: the end of a life that never ends is null.
function spacesOf(value: unknown): p.AddressSpace[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw damaged('its spaces are not a list');
  return (value as readonly Record<string, unknown>[]).map((space) => ({
    place: Number(space['place']),
    size: Number(space['size']),
    address: String(space['address']),
    label: String(space['label']),
    lives: (Array.isArray(space['lives']) ? (space['lives'] as readonly (readonly (number | null)[])[]) : []).map(
      (life): readonly [number, number] => [life[0] ?? 0, life[1] ?? Infinity],
    ),
  }));
}

function damaged(what: string): DataError {
  return new DataError(`The answer cannot be read: ${what}. Reload the page; if that does not help, start gpumemtrace view again.`);
}
