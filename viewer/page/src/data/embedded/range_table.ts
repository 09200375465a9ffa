// Tables of ranges over a standalone file, with the rows and sums of
// viewer/questions/range_table.h.

import { upperBound } from '../../base/binary_search';
import type { Frame, RangeQuery, RangeRow, RangeTable } from '../protocol';
import { functionLabel } from '../text_filter';
import type { BlockTest, FilterContext } from './block_filter';
import { fileName, placeOfFrame, type StackTable } from './file_data';
import { dtypeOf, roleOf, sharedText } from './lane_data';
import { absentOf, type Absent } from './scope_blocks';
import type { LaneTotals } from './select_curve';

export interface RangeContext extends FilterContext {
  readonly ns: Float64Array;
  readonly totals: LaneTotals;
  readonly test: BlockTest | null;
}

interface Amounts {
  bytes: number;
  byte_seconds: number;
  allocations: number;
  growth: number;
}

/** The stack that allocated memory, and that of the forward call which caused it, or 0. */
interface Stacks {
  readonly stack: number;
  readonly forward: number;
}

interface Group extends Amounts {
  readonly id: string;
  readonly name: string;
  where: string;
  inclusive: number | null;
  stack: number;
  example: Stacks | null; // the smallest that has a stack
}

export function makeRangeTable(query: RangeQuery, context: RangeContext): RangeTable {
  const { from, to } = query;
  const { ns, lane } = context;
  const peak = context.totals.peakEvent(from, to);
  const kinds = amountsOfKinds(query, peak, context);
  const groups = isByFrame(query.by) ? frameGroups(query.by, query.folded, kinds, context) : kindGroups(query.by, kinds, context);
  const absent = (event: number): Absent => absentOf(lane, { ...query, of: 'live', from: 0, to: event }, context.test);
  const left = absent(peak);
  const growth = absent(to).bytes - absent(from).bytes;
  if (left.bytes !== 0 || growth !== 0) {
    const inclusive = isByFrame(query.by) ? left.bytes : null;
    groups.push({ id: 'omitted', name: 'left out of this file', where: '', bytes: left.bytes, byte_seconds: 0, allocations: 0, growth, inclusive, stack: 0, example: null });
  }
  const total = noAmounts();
  for (const group of groups) addTo(total, group);
  groups.sort(orderOf(query));
  return {
    rows: groups.slice(query.offset, query.offset + query.limit).map(rowOf),
    total_rows: groups.length,
    total,
    peak_event: peak,
    peak_ns: ns[peak]!,
    from_ns: ns[from]!,
    to_ns: ns[to]!,
  };
}

/** Returns what each kind of blocks has in the range; only kinds that are there. */
function amountsOfKinds({ from, to }: RangeQuery, peak: number, { lane, ns, test }: RangeContext): Map<number, Amounts> {
  const { birth, death, kind } = lane.blocks;
  const { size } = lane.kinds;
  const kinds = new Map<number, Amounts>();
  const born = upperBound(birth, to);
  for (let i = 0; i < born; i++) {
    const isBornHere = birth[i]! > from;
    const bytes = size[kind[i]!]!;
    if (death[i]! <= from || (!isBornHere && bytes === 0) || (test !== null && !test(i))) continue;
    let amounts = kinds.get(kind[i]!);
    if (amounts === undefined) kinds.set(kind[i]!, (amounts = noAmounts()));
    if (birth[i]! <= peak && peak < death[i]!) amounts.bytes += bytes;
    amounts.byte_seconds += (bytes * (ns[Math.min(death[i]!, to)]! - ns[Math.max(birth[i]!, from)]!)) / 1e9;
    if (isBornHere) amounts.allocations++;
    amounts.growth += (to < death[i]! ? bytes : 0) - (isBornHere ? 0 : bytes);
  }
  return kinds;
}

function kindGroups(by: RangeQuery['by'], kinds: ReadonlyMap<number, Amounts>, context: RangeContext): Group[] {
  const groups = new Map<string, Group>();
  for (const [kind, amounts] of kinds) {
    const name = nameOf(by, kind, context);
    const group = groups.get(name.id) ?? { ...name, ...noAmounts(), inclusive: null, stack: 0, example: null };
    groups.set(name.id, group);
    count(group, amounts, stacksOf(context.lane, kind));
  }
  return [...groups.values()];
}

function nameOf(by: RangeQuery['by'], kind: number, { meta, stacks, lane }: RangeContext): Pick<Group, 'id' | 'name' | 'where'> {
  const { kinds } = lane;
  const named = (name: string): Pick<Group, 'id' | 'name' | 'where'> => ({ id: `${by}/${name}`, name, where: '' });
  switch (by) {
    case 'category': {
      const code = kinds.category[kind]!;
      return { id: `category/${code}`, name: meta.categories[code] ?? UNKNOWN, where: '' };
    }
    case 'role':
      return named(roleOf(sharedText(lane.alives, kinds.alive[kind]!)) || UNKNOWN);
    case 'dtype':
      return named(dtypeOf(sharedText(lane.tensors, kinds.tensor[kind]!)) || UNKNOWN);
    case 'stream':
      return named(meta.streams[kinds.stream[kind]!] ?? UNKNOWN);
    case 'thread':
      return named(meta.threads[kinds.thread[kind]!] ?? UNKNOWN);
    default: {
      const stack = kinds.stack[kind]!;
      const forward = kinds.forward[kind]!;
      const id = forward === 0 ? `stack/${stack}` : `stack/${stack}+${forward}`;
      return { id, name: stacks.labelOf(stack, forward), where: '' };
    }
  }
}

type ByFrame = 'module' | 'function' | 'line';

function isByFrame(by: RangeQuery['by']): by is ByFrame {
  return by === 'module' || by === 'function' || by === 'line';
}

function frameGroups(by: ByFrame, folded: boolean, kinds: ReadonlyMap<number, Amounts>, { lane, stacks }: RangeContext): Group[] {
  const byStacks = new Map<string, { readonly stacks: Stacks; readonly amounts: Amounts }>();
  for (const [kind, amounts] of kinds) {
    const of = stacksOf(lane, kind);
    const key = `${of.stack}+${of.forward}`;
    const known = byStacks.get(key);
    if (known === undefined) byStacks.set(key, { stacks: of, amounts: { ...amounts } });
    else addTo(known.amounts, amounts);
  }
  const groups = new Map<string, Group>();
  const groupOf = (label: string): Group => {
    let group = groups.get(label);
    const name = label === '' ? UNKNOWN : label;
    if (group === undefined) groups.set(label, (group = { id: `${by}/${name}`, name, where: '', ...noAmounts(), inclusive: 0, stack: 0, example: null }));
    return group;
  };
  for (const { stacks: of, amounts } of byStacks.values()) {
    const own = ownLabel(by, of, stacks);
    count(groupOf(own), amounts, of);
    const all = new Set([own]);
    for (const frame of [...stacks.framesOf(of.stack), ...stacks.framesOf(of.forward)]) {
      if (folded && frame.kind === 'folded') continue;
      const label = labelOf(by, frame);
      if (label !== '') all.add(label);
    }
    for (const label of all) groupOf(label).inclusive! += amounts.bytes;
  }
  for (const group of groups.values()) {
    if (by === 'line' && group.example !== null) group.where = stacks.ownOf(group.example.stack, group.example.forward)?.functionLabel ?? UNKNOWN;
  }
  return [...groups.values()];
}

function labelOf(by: ByFrame, frame: Frame): string {
  return by === 'function' ? functionLabel(frame) : by === 'line' ? placeOfFrame(frame) : moduleOf(frame);
}

/** "libtorch_cuda.so"; of Python code the package, "torch", or the file; '' if not known. */
export function moduleOf({ file, library }: Frame): string {
  if (library !== '') return fileName(library);
  const [, inPackages] = /(?:site|dist)-packages\/([^/]*)/.exec(file) ?? [];
  return inPackages ?? fileName(file);
}

/** Returns the label of the program's own frame. */
function ownLabel(by: ByFrame, { stack, forward }: Stacks, stacks: StackTable): string {
  const own = stacks.ownOf(stack, forward);
  if (own === null) return '';
  if (by === 'function') return own.functionLabel;
  if (by === 'line') return own.place;
  const frame = [...stacks.framesOf(stack), ...stacks.framesOf(forward)].find((one) => functionLabel(one) === own.functionLabel && placeOfFrame(one) === own.place);
  return frame === undefined ? '' : moduleOf(frame);
}

function rowOf({ id, name, where, bytes, byte_seconds, allocations, growth, inclusive, stack }: Group): RangeRow {
  return { id, name, where, bytes, byte_seconds, allocations, growth, inclusive, stack };
}

function orderOf({ sort, descending }: RangeQuery): (a: RangeRow, b: RangeRow) => number {
  const sign = descending ? -1 : 1;
  const key = (row: RangeRow): number | string => (sort === 'inclusive' ? (row.inclusive ?? row.bytes) : row[sort]);
  return (a, b) => sign * compare(key(a), key(b)) || compare(a.id, b.id);
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function count(group: Group, amounts: Amounts, stacks: Stacks): void {
  addTo(group, amounts);
  if (stacks.stack === 0 || (group.example !== null && !isLess(stacks, group.example))) return;
  group.example = stacks;
  group.stack = stacks.stack;
}

function isLess(a: Stacks, b: Stacks): boolean {
  return a.stack < b.stack || (a.stack === b.stack && a.forward < b.forward);
}

function stacksOf({ kinds }: FilterContext['lane'], kind: number): Stacks {
  return { stack: kinds.stack[kind]!, forward: kinds.forward[kind]! };
}

function noAmounts(): Amounts {
  return { bytes: 0, byte_seconds: 0, allocations: 0, growth: 0 };
}

function addTo(sum: Amounts, amounts: Amounts): void {
  sum.bytes += amounts.bytes;
  sum.byte_seconds += amounts.byte_seconds;
  sum.allocations += amounts.allocations;
  sum.growth += amounts.growth;
}

const UNKNOWN = 'unknown';
