// The allocator's state after an event in a standalone file, as viewer/questions/segments.cc
// computes it.

import { NO_ROW, type FileMeta, type Segments, type SegmentState } from '../protocol';
import { hex } from './block_filter';
import type { StackTable } from './file_data';
import { addressOf } from './lane_data';
import type { LoadedLane } from './loaded_lane';
import { byAddress, type PlacedBlock, poolOf, type SegmentMap } from './segment_map';
import { formatBytes } from '../../base/format_bytes';
import { upperBound } from '../../base/binary_search';

export interface SegmentContext {
  readonly meta: FileMeta;
  readonly lane: LoadedLane;
  readonly lanes: readonly LoadedLane[]; // all lanes of the file
  readonly segments: readonly SegmentMap[]; // of the lane's device, after the event
  readonly stacks: StackTable;
  readonly ns: Float64Array;
}

interface Shown {
  readonly address: bigint;
  readonly state: SegmentState;
}

export function segmentsAfter(event: number, context: SegmentContext): Segments {
  const { lane, segments, ns } = context;
  const held = heldAfter(event, lane);
  const mapped = isAllocators(lane) ? segments : [];
  const shown = mapped.map((segment) => ({ address: segment.address, state: stateOf(segment, context) }));
  shown.push(...(isAllocators(lane) ? unplaced(held, mapped, context) : piecesOf(held, context)));
  shown.sort((a, b) => compare(a.state.pool, b.state.pool) || compare(a.state.stream, b.state.stream) || byAddress(a.address, b.address));
  const reserved = isAllocators(lane) ? mapped.map(({ address, end }) => Number(end - address)) : held.map((block) => sizeOf(lane, block));
  return {
    event,
    ns: ns[event]!,
    ...eventInWords(event, context),
    segments: shown.map(({ state }) => state),
    live_bytes: sum(held.map((block) => sizeOf(lane, block))),
    reserved_bytes: sum(reserved),
    largest_hole: mapped.reduce((most, segment) => Math.max(most, largestHole(segment)), 0),
  };
}

/**
 * Returns whether the blocks of a lane are placed in segments. Those of the driver and the host are
 * not.
 */
export function isAllocators({ meta }: LoadedLane): boolean {
  return meta.heap !== 'driver' && meta.heap !== 'host';
}

function heldAfter(event: number, { data }: LoadedLane): number[] {
  const { birth, death } = data.blocks;
  const held: number[] = [];
  for (let i = 0, born = upperBound(birth, event); i < born; i++) if (event < death[i]!) held.push(i);
  return held;
}

function sizeOf({ data }: LoadedLane, block: number): number {
  return data.kinds.size[data.blocks.kind[block]!]!;
}

type Part = Pick<PlacedBlock, 'block' | 'pending'> & { readonly offset: number; readonly bytes: number };

function partsState(parts: readonly Part[], { lane: { data }, stacks }: SegmentContext): Omit<SegmentState, 'address' | 'size' | 'pool' | 'stream' | 'expandable' | 'stack'> {
  const { kinds, blocks } = data;
  const of = <T>(value: (kind: number, block: number) => T): T[] => parts.map(({ block }) => value(blocks.kind[block]!, block));
  return {
    offset: parts.map(({ offset }) => offset),
    bytes: parts.map(({ bytes }) => bytes),
    requested: of((k) => kinds.requested[k]!),
    row: of((_, block) => blocks.row[block]!),
    pending: parts.map(({ pending }) => (pending ? 1 : 0)),
    category: of((k) => kinds.category[k]!),
    key: of((k) => stacks.keyOf(kinds.stack[k]!)),
  };
}

function stateOf(segment: SegmentMap, context: SegmentContext): SegmentState {
  // A block of another heap's allocator in this segment does not belong to this lane.
  const own = segment.blocks.filter(({ lane }) => lane === context.lane);
  const parts = own.map(({ block, pending, begin, end }) => ({ block, pending, offset: Number(begin - segment.address), bytes: Number(end - begin) }));
  return {
    address: hex(segment.address),
    size: Number(segment.end - segment.address),
    pool: poolOf(segment),
    stream: segment.stream ?? 'unknown',
    expandable: segment.expandable,
    stack: segment.stack,
    ...partsState(parts, context),
  };
}

/** Returns the held blocks that are in no known segment, end to end. */
function unplaced(held: readonly number[], segments: readonly SegmentMap[], context: SegmentContext): Shown[] {
  const rest = new Map(held.map((block) => [block, sizeOf(context.lane, block)]));
  for (const { blocks } of segments) {
    for (const { lane, block, pending, begin, end } of blocks) {
      if (lane === context.lane && !pending) rest.set(block, rest.get(block)! - Number(end - begin));
    }
  }
  const parts: Part[] = [];
  let size = 0;
  for (const [block, bytes] of byRow(rest, context.lane)) {
    if (bytes <= 0) continue;
    parts.push({ block, pending: false, offset: size, bytes });
    size += bytes;
  }
  if (parts.length === 0) return [];
  const state = { address: '0x0', size, pool: 'in no segment that is known', stream: '', expandable: false, stack: 0, ...partsState(parts, context) };
  return [{ address: 0n, state }];
}

function byRow(blocks: ReadonlyMap<number, number>, { data }: LoadedLane): [number, number][] {
  return [...blocks].sort(([a], [b]) => data.blocks.row[a]! - data.blocks.row[b]!);
}

function piecesOf(held: readonly number[], context: SegmentContext): Shown[] {
  const { lane, meta } = context;
  const { blocks, kinds } = lane.data;
  return held.map((block) => {
    const address = addressOf(lane.data, block);
    const k = blocks.kind[block]!;
    const size = kinds.size[k]!;
    const parts = partsState([{ block, pending: false, offset: 0, bytes: size }], context);
    return { address, state: { address: hex(address), size, pool: lane.meta.heap, stream: meta.streams[kinds.stream[k]!] ?? 'unknown', expandable: false, stack: kinds.stack[k]!, ...parts } };
  });
}

function largestHole({ address, end, blocks }: SegmentMap): number {
  let reached = address;
  let largest = 0n;
  for (const block of blocks) {
    if (block.begin - reached > largest) largest = block.begin - reached;
    reached = block.end;
  }
  return Number(end - reached > largest ? end - reached : largest);
}

function eventInWords(event: number, { lane, lanes, meta, stacks }: SegmentContext): { readonly what: string; readonly row: number } {
  if (event === 0) return { what: 'before the first event', row: NO_ROW };
  for (const one of lanes) {
    const found = changeAt(event, one);
    if (found === null) continue;
    const { blocks, kinds } = one.data;
    const k = blocks.kind[found.block]!;
    // An event of another heap changes nothing here, so the heap is named.
    const whose = one === lane ? '' : ` of ${one.meta.heap}`;
    const place = stacks.ownOf(kinds.stack[k]!, kinds.forward[k]!)?.place ?? '';
    const where = place === '' ? '' : ` (${place})`;
    return { what: `${found.verb} ${formatBytes(kinds.size[k]!)} at ${hex(addressOf(one.data, found.block))}${whose}${where}`, row: blocks.row[found.block]! };
  }
  const isWhole = (meta.omitted?.blocks ?? 0) === 0;
  return { what: isWhole ? 'a free that the driver refused' : 'an event of a block that this file lacks', row: NO_ROW };
}

function changeAt(event: number, { data }: LoadedLane): { readonly block: number; readonly verb: string } | null {
  const { birth, death } = data.blocks;
  const born = upperBound(birth, event) - 1;
  if (born >= 0 && birth[born] === event) return { block: born, verb: 'alloc' };
  const died = death.indexOf(event);
  return died < 0 ? null : { block: died, verb: 'free' };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
