// The details of one block in a standalone file.

import { type BlockDetails, type FileMeta, NEVER, type Neighbour, NO_ROW, type StackInfo } from '../protocol';
import { upperBound } from '../../base/binary_search';
import { hex } from './block_filter';
import type { FileTexts, StackTable } from './file_data';
import { addressOf, sharedText, type Lane } from './lane_data';
import { type PlacedBlock, poolOf, type SegmentMap, segmentAt } from './segment_map';

export interface DetailsContext {
  readonly meta: FileMeta;
  readonly laneNumber: number;
  readonly lane: Lane;
  readonly stacks: StackTable;
  readonly texts: FileTexts;
  readonly ns: Float64Array;
  readonly segments: readonly SegmentMap[]; // after the block's birth
}

export function detailsOf(block: number, context: DetailsContext): BlockDetails {
  const { meta, lane, stacks, texts, ns } = context;
  const { blocks, kinds } = lane;
  const k = blocks.kind[block]!;
  const birth = blocks.birth[block]!;
  const death = blocks.death[block]!;
  const completed = blocks.completed[block]!;
  const address = addressOf(lane, block);
  const segment = segmentAt(context.segments, address);
  const pool = kinds.pool[k]!;
  const segmentPool = segment === null ? '' : poolOf(segment);
  return {
    row: blocks.row[block]!,
    lane: context.laneNumber,
    address: hex(address),
    size: kinds.size[k]!,
    requested: kinds.requested[k]! < 0 ? null : kinds.requested[k]!,
    name: texts.names[String(kinds.name[k]!)] ?? '',
    category: meta.categories[kinds.category[k]!] ?? 'unknown',
    reason: texts.reasons[kinds.reason[k]!] ?? '',
    confidence: texts.confidences[kinds.confidence[k]!] ?? '',
    stream: meta.streams[kinds.stream[k]!] ?? 'unknown',
    thread: meta.threads[kinds.thread[k]!] ?? 'unknown',
    pool: pool === 0 ? segmentPool : lane.pools[pool - 1]!,
    tensor: sharedText(lane.tensors, kinds.tensor[k]!),
    alive: sharedText(lane.alives, kinds.alive[k]!),
    birth,
    birth_ns: ns[birth]!,
    death,
    death_ns: death === NEVER ? null : ns[death]!,
    completed,
    completed_ns: completedNs(block, context),
    step: stepOf(meta, birth),
    phase: phaseOf(meta, birth),
    stack: { ...stacks.info(kinds.stack[k]!), label: stacks.labelOf(kinds.stack[k]!, kinds.forward[k]!) },
    free_stack: stackOrNull(stacks, kinds.free[k]!),
    forward_stack: stackOrNull(stacks, kinds.forward[k]!),
    segment: segment === null ? null : { address: hex(segment.address), size: Number(segment.end - segment.address), offset: Number(address - segment.address) },
    ...neighbours(block, segment, context),
    same_stack: sameStack(lane, k, birth),
  };
}

function stackOrNull(stacks: StackTable, stack: number): StackInfo | null {
  return stack === 0 ? null : stacks.info(stack);
}

/** Returns the end of a wait. It is between two events and has its own time. */
function completedNs(block: number, { lane, ns }: DetailsContext): number | null {
  const completed = lane.blocks.completed[block]!;
  const waited = lane.waited.get(block);
  if (waited !== undefined) return ns[lane.blocks.death[block]!]! + waited;
  return completed === NEVER ? null : ns[Math.min(completed, ns.length - 1)]!;
}

function phaseOf({ phases }: FileMeta, birth: number): string {
  if (birth === 0) return '';
  return phases.find((phase) => phase.begin < birth && birth <= phase.end)?.kind ?? 'other';
}

function stepOf({ steps }: FileMeta, birth: number): number | null {
  if (birth === 0) return null;
  const step = upperBound(steps.begin, birth - 1) - 1;
  return step >= 0 && birth <= steps.end[step]! ? step + 1 : null;
}

/** Returns the neighbours of the block in its segment at its birth. */
function neighbours(block: number, segment: SegmentMap | null, { lane, stacks }: DetailsContext): { before: Neighbour | null; after: Neighbour | null } {
  const placed = segment?.blocks ?? [];
  const index = placed.findIndex((one) => one.lane.data === lane && one.block === block);
  const own = placed[index];
  if (segment === null || own === undefined) return { before: null, after: null };
  const before = placed[index - 1];
  const after = placed[index + 1];
  return {
    before: neighbour(own.begin - (before?.end ?? segment.address), before, stacks),
    after: neighbour((after?.begin ?? segment.end) - own.end, after, stacks),
  };
}

function neighbour(hole: bigint, other: PlacedBlock | undefined, stacks: StackTable): Neighbour | null {
  if (hole > 0n) return { row: NO_ROW, size: Number(hole), label: 'hole' };
  if (other === undefined) return null;
  const { blocks, kinds } = other.lane.data;
  const kind = blocks.kind[other.block]!;
  const label = stacks.labelOf(kinds.stack[kind]!, kinds.forward[kind]!);
  return { row: blocks.row[other.block]!, size: Number(other.end - other.begin), label: other.pending ? `${label}, freed and waiting` : label };
}

/**
 * Counts the blocks of the lane from one stack: their number, the bytes they hold at an event, and
 * their peak.
 */
function sameStack(lane: Lane, own: number, event: number): BlockDetails['same_stack'] {
  const { count, birth, death, kind } = lane.blocks;
  const changes: (readonly [number, number])[] = [];
  let blocks = 0;
  let live = 0;
  for (let i = 0; i < count; i++) {
    const k = kind[i]!;
    if (lane.kinds.stack[k] !== lane.kinds.stack[own] || lane.kinds.forward[k] !== lane.kinds.forward[own]) continue;
    const size = lane.kinds.size[k]!;
    blocks++;
    if (birth[i]! <= event && event < death[i]!) live += size;
    changes.push([birth[i]!, size]);
    if (death[i] !== NEVER) changes.push([death[i]!, -size]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  let now = 0;
  let peak = 0;
  for (const [, bytes] of changes) {
    now += bytes;
    peak = Math.max(peak, now);
  }
  return { blocks, live_bytes: live, peak_bytes: peak };
}
