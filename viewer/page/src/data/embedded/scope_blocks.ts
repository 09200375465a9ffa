// Enumerates the blocks of a Scope (protocol.ts) as viewer/questions/scope_rows.h does, and the
// part of the scope that is not in the file.

import type { Scope } from '../protocol';
import type { BlockTest } from './block_filter';
import type { Lane, OmittedStacks } from './lane_data';
import { upperBound } from '../../base/binary_search';

/**
 * Calls `call` for each block by birth, with sign 1 for a block that was added and -1 for one that
 * went (growth).
 */
export function forEachBlock(lane: Lane, scope: Scope, test: BlockTest | null, call: (block: number, sign: 1 | -1) => void): void {
  const { birth, death } = lane.blocks;
  const { from, to } = scope;
  const held = (block: number, event: number): boolean => birth[block]! <= event && event < death[block]!;
  const born = upperBound(birth, to);
  const visit = (first: number, end: number, wanted: BlockTest, sign: 1 | -1): void => {
    for (let i = first; i < end; i++) if (wanted(i) && (test === null || test(i))) call(i, sign);
  };
  switch (scope.of) {
    case 'live':
      visit(0, born, (i) => to < death[i]!, 1);
      break;
    case 'growth':
      visit(0, born, (i) => to < death[i]! && !held(i, from), 1);
      visit(0, upperBound(birth, from), (i) => from < death[i]! && !held(i, to), -1);
      break;
    case 'born':
      visit(upperBound(birth, from), born, () => true, 1);
      break;
    case 'kept':
      visit(upperBound(birth, from), born, (i) => to < death[i]!, 1);
      break;
  }
}

/** The part of a scope that is not in the file, as far as it is known. */
export interface Absent {
  /** By stack, if the event is one of those that people ask for. */
  readonly stacks: OmittedStacks | null;
  readonly bytes: number;
  readonly blocks: number;
}

const NOTHING: Absent = { stacks: null, bytes: 0, blocks: 0 };

/**
 * Returns the part that is not in the file. A non-null `test` gives nothing, because it is unknown
 * which of the missing blocks would match.
 */
export function absentOf(lane: Lane, scope: Scope, test: BlockTest | null): Absent {
  if (test !== null) return NOTHING;
  if (scope.of === 'live') return absentAt(lane, scope.to);
  if (scope.of !== 'growth') return NOTHING;
  const before = absentAt(lane, scope.from);
  const after = absentAt(lane, scope.to);
  return { stacks: null, bytes: after.bytes - before.bytes, blocks: after.blocks - before.blocks };
}

function absentAt(lane: Lane, event: number): Absent {
  const { border, bytes, blocks, stacks } = lane.omissions;
  if (border.length === 0) return { stacks: null, bytes: 0, blocks: 0 };
  const k = Math.max(0, upperBound(border, event) - 1);
  let sum = 0;
  for (let at = k; at < bytes.length; at += border.length) sum += bytes[at]!;
  return { stacks: stacks.find((one) => one.event === event) ?? null, bytes: sum, blocks: blocks[k]! };
}
