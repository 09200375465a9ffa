// Reconstructs the driver memory of the allocators of one device after an event from the pieces and
// blocks of a standalone file. The rules are those of analysis/fragmentation/segment_map.h.

import { addressOf } from './lane_data';
import type { LoadedLane } from './loaded_lane';
import { upperBound } from '../../base/binary_search';

/** Address, size, birth, death, whether it is a page, stream, private pool, stack; null: none. */
export type PackedPiece = readonly [string, number, number, number, number, string | null, string | null, number];

export interface SegmentTable {
  /** By device. */
  readonly [device: string]: readonly PackedPiece[];
}

const SMALL_BLOCK = 1 << 20; // c10/cuda/CUDACachingAllocator.cpp: kSmallSize
const SMALL_SEGMENT = 2 << 20; // kSmallBuffer
const LARGE_PAGE = 20 << 20; // kLargeBuffer
// How many events after a segment's birth its first block is searched for.
const EVENTS_TO_FIRST_BLOCK = 1 << 12;

export interface PlacedBlock {
  readonly lane: LoadedLane;
  readonly block: number;
  readonly begin: bigint;
  readonly end: bigint;
  readonly pending: boolean;
}

export interface SegmentMap {
  readonly address: bigint;
  end: bigint;
  stream: string | null;
  isSmall: boolean;
  isPrivate: boolean;
  readonly pool: string; // the private pool, if the birth of the driver memory reveals it
  readonly birth: number;
  readonly expandable: boolean;
  readonly stack: number;
  /** Sorted by address, without overlap. */
  readonly blocks: PlacedBlock[];
}

export interface MapContext {
  readonly pieces: readonly PackedPiece[];
  /** The allocators' lanes of the device. */
  readonly lanes: readonly LoadedLane[];
  readonly streams: readonly string[];
  readonly imported: boolean;
}

/** Returns the segments, sorted by address. */
export function mapSegments(event: number, context: MapContext): SegmentMap[] {
  const segments = joinPieces(event, context);
  const blocks = placedBlocks(event, context.lanes);
  let next = 0;
  for (const segment of segments) {
    while (next < blocks.length && blocks[next]!.end <= segment.address) next++;
    for (let i = next; i < blocks.length && blocks[i]!.begin < segment.end; i++) {
      const placed = blocks[i]!;
      const begin = placed.begin < segment.address ? segment.address : placed.begin;
      const end = placed.end > segment.end ? segment.end : placed.end;
      segment.blocks.push({ ...placed, begin, end });
      noteBlock(segment, placed, context.streams);
    }
    if (segment.blocks.length === 0) noteFirstBlock(segment, event, context);
  }
  return segments;
}

export function segmentAt(segments: readonly SegmentMap[], address: bigint): SegmentMap | null {
  return segments.find((segment) => segment.address <= address && address < segment.end) ?? null;
}

/** Returns the same as PoolName in viewer/questions/segments.h. */
export function poolOf({ isPrivate, isSmall, pool, expandable }: SegmentMap): string {
  const name = isPrivate ? ['private', pool].filter((part) => part !== '').join(' ') : isSmall ? 'small' : 'large';
  return expandable ? `${name}, expandable` : name;
}

function joinPieces(event: number, { pieces, imported }: MapContext): SegmentMap[] {
  const chunks = pieces
    .filter(([, size, birth, death]) => size > 0 && birth <= event && event < death)
    .map(([address, size, birth, , page, stream, pool, stack]) => ({ address: BigInt(address), size: BigInt(size), birth, isPage: page === 1, stream, pool: pool ?? '', stack }));
  chunks.sort((a, b) => byAddress(a.address, b.address));
  const segments: SegmentMap[] = [];
  let reached = 0n;
  for (const { size: bytes, isPage, pool, ...chunk } of chunks) {
    const end = chunk.address + bytes;
    const address = chunk.address < reached ? reached : chunk.address; // an overlap belongs to the first piece
    if (end > reached) reached = end;
    if (end <= address) continue;
    const size = Number(end - address);
    // A snapshot of PyTorch's own recorder gives what one call mapped, which may be many pages.
    const unit = isPage && imported ? Math.min(size, size % LARGE_PAGE === 0 ? LARGE_PAGE : SMALL_SEGMENT) : size;
    const isSmall = unit <= SMALL_SEGMENT;
    const isPrivate = pool !== '';
    const last = segments.at(-1);
    if (isPage && last?.expandable === true && last.end === address && last.stream === chunk.stream && last.isPrivate === isPrivate) {
      last.end = end;
      last.isSmall = last.isSmall && isSmall;
      continue;
    }
    segments.push({ ...chunk, address, end, isSmall, isPrivate, pool, expandable: isPage, blocks: [] });
  }
  return segments;
}

/**
 * Returns the blocks that are held or wait for a stream, by address. An overlap belongs to the
 * first block.
 */
function placedBlocks(event: number, lanes: readonly LoadedLane[]): PlacedBlock[] {
  const placed: PlacedBlock[] = [];
  for (const lane of lanes) {
    const { blocks, kinds } = lane.data;
    for (let i = 0, born = upperBound(blocks.birth, event); i < born; i++) {
      if (blocks.completed[i]! <= event) continue;
      const begin = addressOf(lane.data, i);
      placed.push({ lane, block: i, begin, end: begin + BigInt(kinds.size[blocks.kind[i]!]!), pending: blocks.death[i]! <= event });
    }
  }
  placed.sort((a, b) => byAddress(a.begin, b.begin));
  const apart: PlacedBlock[] = [];
  let reached = 0n;
  for (const block of placed) {
    const begin = block.begin < reached ? reached : block.begin;
    if (block.end > begin) apart.push({ ...block, begin });
    if (block.end > reached) reached = block.end;
  }
  return apart;
}

/** Derives properties of a segment from one of its blocks. */
function noteBlock(segment: SegmentMap, { lane: { data }, block }: { readonly lane: LoadedLane; readonly block: number }, streams: readonly string[]): void {
  const k = data.blocks.kind[block]!;
  if (data.kinds.size[k]! > SMALL_BLOCK) segment.isSmall = false;
  const pool = data.kinds.pool[k]!;
  if (pool !== 0 && data.pools[pool - 1] !== '0x0') segment.isPrivate = true;
  const stream = data.kinds.stream[k]!; // 0: unknown
  if (segment.stream === null && stream !== 0) segment.stream = streams[stream] ?? null;
}

/**
 * Derives properties of an empty segment from its first block. An allocator takes a segment for a
 * block that it then places in it, so that block comes soon.
 */
function noteFirstBlock(segment: SegmentMap, event: number, { lanes, streams }: MapContext): void {
  const last = Math.min(event, segment.birth + EVENTS_TO_FIRST_BLOCK);
  const born = lanes.flatMap((lane) => {
    const { birth } = lane.data.blocks;
    const first = upperBound(birth, segment.birth);
    return Array.from({ length: Math.max(0, upperBound(birth, last) - first) }, (_, i) => ({ lane, block: first + i, birth: birth[first + i]! }));
  });
  born.sort((a, b) => a.birth - b.birth);
  for (const one of born) {
    const address = addressOf(one.lane.data, one.block);
    if (address < segment.address || address >= segment.end) continue;
    noteBlock(segment, one, streams);
    if (segment.stream !== null) return;
  }
}

export function byAddress(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
