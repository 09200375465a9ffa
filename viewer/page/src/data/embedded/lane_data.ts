// One lane of a standalone file: its blocks as columns, and totals of what the file leaves out.
// viewer/html/lane_slab.cc writes it and explains the encoding.

import { type AddressSpace, BLOCK_FROM_BEFORE, BLOCK_NOT_FREED, BLOCK_PENDING, NEVER, type Sampled } from '../protocol';
import type { Slab } from '../slab';
import { readDeltas, readVarints, unzigzag } from './varints';

/** The blocks, sorted by birth, then by row. `kind` is an index into Kinds. */
export interface Blocks {
  readonly count: number;
  readonly row: Uint32Array;
  readonly birth: Uint32Array;
  readonly death: Uint32Array; // NEVER
  readonly completed: Uint32Array; // equal to death unless the block waited for other streams
  readonly kind: Uint32Array;
  readonly space: Uint32Array; // 1 + index in Lane.spaces; 0: in none
  readonly offset: Float64Array; // in its space, or the address if it is in none
}

/** The common properties of blocks. Texts are codes of FileMeta or FileTexts. */
export interface Kinds {
  readonly size: Float64Array;
  readonly requested: Float64Array; // -1: unknown
  readonly stack: Uint32Array;
  readonly forward: Uint32Array;
  readonly free: Uint32Array;
  readonly category: Uint8Array;
  readonly confidence: Uint8Array;
  readonly reason: Uint32Array;
  readonly stream: Uint16Array;
  readonly thread: Uint16Array;
  readonly pool: Uint32Array;
  readonly name: Uint32Array;
  readonly tensor: Uint32Array; // 1 + index in Lane.tensors; 0: unknown
  readonly alive: Uint32Array; // in Lane.alives, the same way
}

/**
 * The bytes of the blocks that are not in the file. Borders are events: evenly spaced ones, and
 * those that people ask for (peak, end, failures).
 */
export interface Omissions {
  readonly border: Uint32Array;
  readonly bytes: Float64Array; // held after border b, by category: [code * borders + b]
  readonly blocks: Float64Array; // of all categories, by border
  readonly min: Float64Array; // of the lane's live bytes from border b to before the next border
  readonly max: Float64Array;
  readonly peak: Float64Array; // the first event of the maximum
  readonly stacks: readonly OmittedStacks[];
}

/** The part of the live set at an event that is not in the blocks of the file. */
export interface OmittedStacks {
  readonly event: number;
  readonly entries: readonly { readonly stack: number; readonly forward: number; readonly category: number; readonly bytes: number; readonly blocks: number }[];
}

export interface Changes {
  readonly event: Uint32Array;
  readonly value: Float64Array;
}

export interface Samples {
  readonly event: Uint32Array; // ascending, like ns
  readonly ns: Float64Array;
  readonly value: Float64Array;
}

export interface Lane {
  readonly blocks: Blocks;
  readonly kinds: Kinds;
  readonly flags: Uint8Array; // by block: BLOCK_*
  /** By block that waited: ns from its death until it could be used again, if that was recorded. */
  readonly waited: ReadonlyMap<number, number>;
  /** By block that is not at its own address (physical memory): 1 + its place; 0: none. */
  readonly mapped: ReadonlyMap<number, number>;
  readonly omissions: Omissions;
  readonly reserved: Changes | null;
  readonly samples: ReadonlyMap<Sampled, Samples>;
  readonly pools: readonly string[]; // code 1 is [0]
  readonly tensors: readonly string[];
  readonly alives: readonly string[];
  readonly spaces: readonly AddressSpace[]; // by address; lives are in events
  readonly spaceBegin: readonly bigint[];
}

/** Reads columns of packed numbers from a slab. */
export class PackedColumns {
  constructor(private readonly slab: Slab) {}

  has(name: string): boolean {
    return this.slab.arrays.has(name);
  }
  numbers(name: string, count: number): Float64Array {
    return readVarints(this.bytes(name), count);
  }
  deltas(name: string, count: number): Float64Array {
    return readDeltas(this.bytes(name), count);
  }
  count(name: string): number {
    const value = this.slab.fields[name];
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) throw new RangeError(`no count of ${name}`);
    return value;
  }
  private bytes(name: string): Uint8Array {
    const array = this.slab.arrays.get(name);
    if (!(array instanceof Uint8Array)) throw new RangeError(`no column ${name}`);
    return array;
  }
}

export function readLane(slab: Slab): Lane {
  const columns = new PackedColumns(slab);
  const kinds = readKinds(columns);
  const { blocks, flags, waited } = readBlocks(columns, kinds.size.length);
  const spaces = spacesOf(slab.fields['spaces']);
  return {
    blocks,
    kinds,
    flags,
    waited,
    mapped: readMapped(columns),
    omissions: readOmissions(columns, slab),
    reserved: columns.has('reserved.event') ? readChanges(columns, 'reserved') : null,
    samples: readSamples(columns),
    pools: textsOf(slab.fields['pools']),
    tensors: textsOf(slab.fields['tensors']),
    alives: textsOf(slab.fields['alives']),
    spaces,
    spaceBegin: spaces.map((space) => BigInt(space.address)),
  };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function readKinds(columns: PackedColumns): Kinds {
  const count = columns.count('kinds');
  const u32 = (name: string): Uint32Array => Uint32Array.from(columns.numbers(`kind.${name}`, count));
  const size = columns.numbers('kind.size', count);
  // Rounding is stored instead, because it is often 0.
  const rounding = columns.numbers('kind.rounding', count);
  return {
    size,
    requested: size.map((bytes, k) => (rounding[k] === 0 ? -1 : bytes - unzigzag(rounding[k]! - 1))),
    stack: u32('stack'),
    forward: u32('forward'),
    free: u32('free'),
    category: Uint8Array.from(columns.numbers('kind.category', count)),
    confidence: Uint8Array.from(columns.numbers('kind.confidence', count)),
    reason: u32('reason'),
    stream: Uint16Array.from(columns.numbers('kind.stream', count)),
    thread: Uint16Array.from(columns.numbers('kind.thread', count)),
    pool: u32('pool'),
    name: u32('name'),
    tensor: u32('tensor'),
    alive: u32('alive'),
  };
}

function readBlocks(columns: PackedColumns, kinds: number): Pick<Lane, 'blocks' | 'flags' | 'waited'> {
  const count = columns.count('blocks');
  const birth = Uint32Array.from(columns.deltas('birth', count));
  const life = columns.numbers('life', count);
  const death = new Uint32Array(count);
  for (let i = 0; i < count; i++) death[i] = life[i] === 0 ? NEVER : birth[i]! + life[i]!;

  const completed = death.slice();
  const waits = columns.count('waits');
  const waiting = columns.deltas('wait.block', waits);
  const waitedEvents = columns.numbers('wait.events', waits); // 0: to the end
  const waitedNs = columns.numbers('wait.ns', waits); // plus 1; 0: not recorded
  const waited = new Map<number, number>();
  for (let i = 0; i < waits; i++) {
    const block = waiting[i]!;
    if (waitedNs[i]! > 0) waited.set(block, waitedNs[i]! - 1);
    completed[block] = waitedEvents[i] === 0 ? NEVER : death[block]! + waitedEvents[i]! - 1;
  }

  // Code 0 stands for the next kind that has not occurred before.
  const kind = new Uint32Array(count);
  const coded = columns.numbers('kind', count);
  let known = 0;
  for (let i = 0; i < count; i++) {
    kind[i] = coded[i] === 0 ? known++ : coded[i]! - 1;
    if (kind[i]! >= kinds) throw new RangeError('a block of no kind');
  }

  const flags = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    flags[i] =
      (birth[i] === 0 ? BLOCK_FROM_BEFORE : 0) |
      (completed[i] === death[i] ? 0 : BLOCK_PENDING) |
      (death[i] === NEVER ? BLOCK_NOT_FREED : 0);
  }
  const blocks = {
    count,
    row: Uint32Array.from(columns.deltas('row', count)),
    birth,
    death,
    completed,
    kind,
    space: Uint32Array.from(columns.numbers('space', count)),
    offset: columns.deltas('offset', count),
  };
  return { blocks, flags, waited };
}

function readMapped(columns: PackedColumns): Map<number, number> {
  const count = columns.count('mapped');
  const block = columns.deltas('mapped.block', count);
  const place = columns.numbers('mapped.place', count);
  return new Map(Array.from(block, (b, i) => [b, place[i]!]));
}

function readOmissions(columns: PackedColumns, slab: Slab): Omissions {
  const borders = columns.count('borders');
  const codes = columns.count('codes');
  const stacks = slab.fields['omitted'];
  return {
    border: Uint32Array.from(columns.deltas('border', borders)),
    bytes: columns.deltas('omitted.bytes', codes * borders),
    blocks: columns.deltas('omitted.blocks', borders),
    min: columns.deltas('total.min', borders),
    max: columns.deltas('total.max', borders),
    peak: columns.deltas('total.peak', borders),
    stacks: Array.isArray(stacks) ? (stacks as readonly PackedStacks[]).map(unpackStacks) : [],
  };
}

interface PackedStacks {
  readonly event: number;
  readonly entries: readonly (readonly [number, number, number, number, number])[];
}

function unpackStacks(packed: PackedStacks): OmittedStacks {
  const entries = packed.entries.map(([stack, forward, category, bytes, blocks]) => ({ stack, forward, category, bytes, blocks }));
  return { event: packed.event, entries };
}

function readChanges(columns: PackedColumns, name: string): Changes {
  const count = columns.count(`${name}.count`);
  return { event: Uint32Array.from(columns.deltas(`${name}.event`, count)), value: columns.deltas(`${name}.value`, count) };
}

function readSamples(columns: PackedColumns): Map<Sampled, Samples> {
  const samples = new Map<Sampled, Samples>();
  for (const name of ['driver_used', 'process_used'] as const) {
    if (!columns.has(`${name}.event`)) continue;
    const changes = readChanges(columns, name);
    samples.set(name, { ...changes, ns: columns.deltas(`${name}.ns`, changes.event.length) });
  }
  return samples;
}

/** Returns the text of a code of `tensors` or `alives`; code 0 means none. */
export function sharedText(texts: readonly string[], code: number): string {
  return code === 0 ? '' : (texts[code - 1] ?? '');
}

// analysis/examination/alive.cc
const ROLES = ['', 'a parameter', 'a gradient', 'saved for backward', 'state of an optimizer', 'an input', 'only the program holds it'] as const;

/** Returns the code of the first reason that a text of `alives` names; 0: none. */
export function roleCode(alive: string): number {
  return Math.max(0, ROLES.findIndex((role) => role !== '' && alive.startsWith(role)));
}

/** Returns that reason, or ''. */
export function roleOf(alive: string): string {
  return ROLES[roleCode(alive)]!;
}

/** Returns the type in a text of `tensors`: 'bfloat16' of 'bfloat16 [8, 128]'. */
export function dtypeOf(tensor: string): string {
  return tensor.split(' ')[0]!;
}

/** Returns the position of a block in the lane's address space, or NaN if unknown. */
export function placeOf(lane: Lane, block: number): number {
  const mapped = lane.mapped.get(block);
  if (mapped !== undefined) return mapped === 0 ? NaN : mapped - 1;
  const space = lane.blocks.space[block]!;
  return space === 0 ? NaN : lane.spaces[space - 1]!.place + lane.blocks.offset[block]!;
}

export function addressOf(lane: Lane, block: number): bigint {
  const space = lane.blocks.space[block]!;
  return (space === 0 ? 0n : lane.spaceBegin[space - 1]!) + BigInt(lane.blocks.offset[block]!);
}

interface PackedSpace {
  readonly place: number;
  readonly size: number;
  readonly address: string;
  readonly label: string;
  readonly lives: readonly (readonly [number, number | null])[]; // null: never
}

function spacesOf(value: unknown): AddressSpace[] {
  if (!Array.isArray(value)) return [];
  return (value as readonly PackedSpace[]).map((space) => ({
    ...space,
    lives: space.lives.map(([from, to]) => [from, to ?? Infinity] as const),
  }));
}
