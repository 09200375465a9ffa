// What lay where in the driver memory of an allocator after an event, put together from the pieces and
// blocks of a mailed file; the rules are those of analysis/fragmentation/segment_map.h.

import type { FileMeta, LaneMeta, Segments, SegmentState } from '../protocol';
import { hex } from './block_filter';
import type { StackTable } from './file_data';
import { addressOf, type Lane } from './lane_data';
import { upperBound } from '../../base/binary_search';

/** Address, size, birth, death, whether it is a page, stream, whether of a private pool, stack. */
export type PackedPiece = readonly [string, number, number, number, number, string | null, number, number];

export interface SegmentTable {
  /** By device. */
  readonly [device: string]: readonly PackedPiece[];
}

const SMALL_BLOCK = 1 << 20; // c10/cuda/CUDACachingAllocator.cpp: kSmallSize
const SMALL_SEGMENT = 2 << 20; // kSmallBuffer
const LARGE_PAGE = 20 << 20; // kLargeBuffer

interface Segment {
  readonly address: bigint;
  end: bigint;
  stream: string | null;
  isSmall: boolean;
  isPrivate: boolean;
  readonly expandable: boolean;
  readonly stack: number;
  readonly blocks: { readonly block: number; readonly begin: bigint; readonly end: bigint; readonly pending: boolean }[];
}

export interface SegmentContext {
  readonly meta: FileMeta;
  readonly laneMeta: LaneMeta;
  readonly lane: Lane;
  readonly stacks: StackTable;
  readonly ns: Float64Array;
}

export function segmentsAfter(event: number, pieces: readonly PackedPiece[], context: SegmentContext): Segments {
  const segments = joinPieces(event, pieces, context.meta.imported_from !== '');
  placeBlocks(segments, event, context);
  const states = segments.sort(bySegmentOrder).map((segment) => stateOf(segment, context));
  return {
    event,
    ns: context.ns[Math.min(event, context.ns.length - 1)]!,
    ...eventInWords(event, context),
    segments: states,
    live_bytes: sum(states.map((s) => sum(s.bytes.filter((_, i) => s.pending[i] === 0)))),
    reserved_bytes: sum(states.map((s) => s.size)),
    largest_hole: Math.max(0, ...states.map(largestHole)),
  };
}

function joinPieces(event: number, pieces: readonly PackedPiece[], imported: boolean): Segment[] {
  const chunks = pieces
    .filter(([, size, birth, death]) => size > 0 && birth <= event && event < death)
    .map(([address, size, , , page, stream, isPrivate, stack]) => ({
      address: BigInt(address),
      size: BigInt(size),
      isPage: page === 1,
      stream,
      isPrivate: isPrivate === 1,
      stack,
    }));
  chunks.sort((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : 0));
  const segments: Segment[] = [];
  let reached = 0n;
  for (const chunk of chunks) {
    const end = chunk.address + chunk.size;
    const address = chunk.address < reached ? reached : chunk.address; // what overlaps is the first one's
    if (end > reached) reached = end;
    if (end <= address) continue;
    const size = Number(end - address);
    // A snapshot of PyTorch's own recorder says what one call mapped, which may be many pages.
    const unit = chunk.isPage && imported ? Math.min(size, size % LARGE_PAGE === 0 ? LARGE_PAGE : SMALL_SEGMENT) : size;
    const isSmall = unit <= SMALL_SEGMENT;
    const last = segments.at(-1);
    if (chunk.isPage && last?.expandable === true && last.end === address && last.stream === chunk.stream && last.isPrivate === chunk.isPrivate) {
      last.end = end;
      last.isSmall = last.isSmall && isSmall;
      continue;
    }
    segments.push({ address, end, stream: chunk.stream, isSmall, isPrivate: chunk.isPrivate, expandable: chunk.isPage, stack: chunk.stack, blocks: [] });
  }
  return segments;
}

/** Lays the blocks that are held or awaited into the segments; who they are of is told by them, too. */
function placeBlocks(segments: Segment[], event: number, { lane, meta }: SegmentContext): void {
  const { birth, death, completed, kind } = lane.blocks;
  const held: { block: number; begin: bigint; end: bigint; pending: boolean }[] = [];
  for (let i = 0, born = upperBound(birth, event); i < born; i++) {
    if (completed[i]! <= event) continue;
    const begin = addressOf(lane, i);
    held.push({ block: i, begin, end: begin + BigInt(lane.kinds.size[kind[i]!]!), pending: death[i]! <= event });
  }
  held.sort((a, b) => (a.begin < b.begin ? -1 : a.begin > b.begin ? 1 : 0));
  let next = 0;
  for (const segment of segments) {
    while (next < held.length && held[next]!.end <= segment.address) next++;
    for (let i = next; i < held.length && held[i]!.begin < segment.end; i++) {
      const { block, begin, end, pending } = held[i]!;
      const from = begin < segment.address ? segment.address : begin;
      const to = end > segment.end ? segment.end : end;
      if (to > from) segment.blocks.push({ block, begin: from, end: to, pending });
      const k = kind[block]!;
      if (lane.kinds.size[k]! > SMALL_BLOCK) segment.isSmall = false;
      if (lane.kinds.pool[k]! !== 0 && lane.pools[lane.kinds.pool[k]! - 1] !== '0x0') segment.isPrivate = true;
      const stream = meta.streams[lane.kinds.stream[k]!];
      if (segment.stream === null && stream !== undefined && stream !== 'unknown') segment.stream = stream;
    }
  }
}

function poolOf(segment: Segment): string {
  return segment.isPrivate ? 'private' : segment.isSmall ? 'small' : 'large';
}

function bySegmentOrder(a: Segment, b: Segment): number {
  const left = `${poolOf(a)} ${a.stream ?? ''}`;
  const right = `${poolOf(b)} ${b.stream ?? ''}`;
  if (left !== right) return left < right ? -1 : 1;
  return a.address < b.address ? -1 : a.address > b.address ? 1 : 0;
}

function stateOf(segment: Segment, { lane, stacks }: SegmentContext): SegmentState {
  const { kinds, blocks } = lane;
  const of = <T>(value: (kind: number, block: number) => T): T[] => segment.blocks.map(({ block }) => value(blocks.kind[block]!, block));
  return {
    address: hex(segment.address),
    size: Number(segment.end - segment.address),
    pool: poolOf(segment),
    stream: segment.stream ?? 'unknown',
    expandable: segment.expandable,
    stack: segment.stack,
    offset: segment.blocks.map(({ begin }) => Number(begin - segment.address)),
    bytes: segment.blocks.map(({ begin, end }) => Number(end - begin)),
    requested: of((k) => kinds.requested[k]!),
    row: of((_, block) => blocks.row[block]!),
    pending: segment.blocks.map(({ pending }) => (pending ? 1 : 0)),
    category: of((k) => kinds.category[k]!),
    key: of((k) => stacks.keyOf(kinds.stack[k]!)),
  };
}

function largestHole(segment: SegmentState): number {
  let reached = 0;
  let largest = 0;
  segment.offset.forEach((offset, i) => {
    largest = Math.max(largest, offset - reached);
    reached = Math.max(reached, offset + segment.bytes[i]!);
  });
  return Math.max(largest, segment.size - reached);
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

function eventInWords(event: number, { lane, stacks }: SegmentContext): { readonly what: string; readonly row: number } {
  const { birth, death, kind, row, count } = lane.blocks;
  const describe = (block: number, verb: string): { what: string; row: number } => {
    const k = kind[block]!;
    const own = stacks.ownOf(lane.kinds.stack[k]!);
    const where = own === null || own.place === '' ? '' : ` (${own.place})`;
    return { what: `${verb} ${lane.kinds.size[k]!} bytes at ${hex(addressOf(lane, block))}${where}`, row: row[block]! };
  };
  if (event > 0) {
    const born = upperBound(birth, event) - 1;
    if (born >= 0 && birth[born] === event) return describe(born, 'alloc');
    for (let i = 0; i < count; i++) if (death[i] === event) return describe(i, 'free');
  }
  return { what: event === 0 ? 'before the first event' : 'an event of other memory', row: 0xffffffff };
}
