// Tables of ranges over a standalone file, with the rows and sums of
// viewer/questions/range_table.h.

import { DataError } from '../data_source';
import type { Frame, RangeQuery, RangeRow, RangeTable } from '../protocol';
import { functionLabel } from '../text_filter';
import { fileName, placeOfFrame, type StackTable } from './file_data';
import { dtypeOf, roleOf, sharedText } from './lane_data';
import { addTo, noAmounts, sumUpKinds, type Amounts, type RangeContext } from './range_amounts';
import { absentOf, type Absent } from './scope_blocks';

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
  const { ns } = context;
  const { kinds, peak } = sumUpKinds(query, context);
  const within = withinOf(query.within);
  for (const [kind] of kinds) {
    if (within.blocks.some(([by, id]) => idOf(by, kind, context) !== id)) kinds.delete(kind);
  }
  const groups = groupsOf(query, within, kinds, context);
  if (query.box === null && query.within.length === 0) groups.push(...leftOut(query, peak, context));
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

function leftOut(query: RangeQuery, peak: number, { lane, test }: RangeContext): Group[] {
  const absent = (event: number): Absent => absentOf(lane, { ...query, of: 'live', from: 0, to: event }, test);
  const left = absent(peak);
  const end_bytes = absent(query.to).bytes;
  const growth = end_bytes - absent(query.from).bytes;
  if (left.bytes === 0 && growth === 0 && end_bytes === 0) return [];
  const inclusive = isByFrame(query.by) ? left.bytes : null;
  return [{ id: 'omitted', name: 'left out of this file', where: '', bytes: left.bytes, byte_seconds: 0, allocations: 0, growth, end_bytes, inclusive, stack: 0, example: null }];
}

type By = RangeQuery['by'];
type ByFrame = 'module' | 'function' | 'line';

const BYS: readonly By[] = ['category', 'role', 'dtype', 'module', 'function', 'line', 'stack', 'thread', 'stream'];

function isByFrame(by: By): by is ByFrame {
  return by === 'module' || by === 'function' || by === 'line';
}

/** The rows that a table is within. */
interface Within {
  readonly frames: readonly (readonly [ByFrame, string])[]; // labels
  readonly blocks: readonly (readonly [By, string])[]; // ids
}

function withinOf(ids: readonly string[]): Within {
  const frames: [ByFrame, string][] = [];
  const blocks: [By, string][] = [];
  for (const id of ids) {
    const by = BYS.find((each) => id.startsWith(`${each}/`));
    if (by === undefined) throw new DataError(`within: '${id}' is no id of a row`);
    if (isByFrame(by)) frames.push([by, id.slice(by.length + 1)]);
    else blocks.push([by, id]);
  }
  return { frames, blocks };
}

/** Which frames of a stack are within the rows of a query. */
interface Frames {
  readonly isOwn: boolean; // the program's own frame
  readonly isAny: boolean; // this or any other
  readonly own: string; // labels; '': unknown
  readonly all: ReadonlySet<string>;
}

/** Returns a function that finds the frames of stacks, each once. */
function frameFinder({ by, folded }: RangeQuery, { frames }: Within, stacks: StackTable): (of: Stacks) => Frames {
  const known = new Map<string, Frames>();
  const fits = (labelBy: (each: ByFrame) => string): boolean => frames.every(([each, text]) => labelBy(each) === text);
  const find = (of: Stacks): Frames => {
    const isOwn = fits((each) => ownLabel(each, of, stacks) || UNKNOWN);
    const own = isOwn && isByFrame(by) ? ownLabel(by, of, stacks) : '';
    const all = new Set<string>(isOwn ? [own] : []);
    let isAny = isOwn;
    if (!isByFrame(by) && (isOwn || frames.length === 0)) return { isOwn, isAny, own, all };
    for (const frame of [...stacks.framesOf(of.stack), ...stacks.framesOf(of.forward)]) {
      if ((folded && frame.kind === 'folded') || !fits((each) => labelOf(each, frame))) continue;
      isAny = true;
      const label = isByFrame(by) ? labelOf(by, frame) : '';
      if (label !== '') all.add(label);
    }
    return { isOwn, isAny, own, all };
  };
  return (of) => {
    const key = `${of.stack}+${of.forward}`;
    let found = known.get(key);
    if (found === undefined) known.set(key, (found = find(of)));
    return found;
  };
}

function groupsOf(query: RangeQuery, within: Within, kinds: ReadonlyMap<number, Amounts>, context: RangeContext): Group[] {
  const framesOf = frameFinder(query, within, context.stacks);
  return isByFrame(query.by) ? frameGroups(query.by, framesOf, kinds, context) : kindGroups(query.by, within, framesOf, kinds, context);
}

function kindGroups(by: By, within: Within, framesOf: (of: Stacks) => Frames, kinds: ReadonlyMap<number, Amounts>, context: RangeContext): Group[] {
  const groups = new Map<string, Group>();
  for (const [kind, amounts] of kinds) {
    const stacks = stacksOf(context.lane, kind);
    const { isOwn, isAny } = framesOf(stacks);
    if (!isAny) continue;
    const id = idOf(by, kind, context);
    let group = groups.get(id);
    if (group === undefined) groups.set(id, (group = emptyGroup(id, nameOf(by, kind, context), within.frames.length > 0)));
    if (group.inclusive !== null) group.inclusive += amounts.bytes;
    if (isOwn) count(group, amounts, stacks);
  }
  return [...groups.values()];
}

function idOf(by: By, kind: number, context: RangeContext): string {
  const { kinds } = context.lane;
  if (by === 'category') return `category/${kinds.category[kind]!}`;
  if (by !== 'stack') return `${by}/${nameOf(by, kind, context)}`;
  const { stack, forward } = stacksOf(context.lane, kind);
  return forward === 0 ? `stack/${stack}` : `stack/${stack}+${forward}`;
}

function nameOf(by: By, kind: number, { meta, stacks, lane }: RangeContext): string {
  const { kinds } = lane;
  switch (by) {
    case 'category':
      return meta.categories[kinds.category[kind]!] ?? UNKNOWN;
    case 'role':
      return roleOf(sharedText(lane.alives, kinds.alive[kind]!)) || UNKNOWN;
    case 'dtype':
      return dtypeOf(sharedText(lane.tensors, kinds.tensor[kind]!)) || UNKNOWN;
    case 'stream':
      return meta.streams[kinds.stream[kind]!] ?? UNKNOWN;
    case 'thread':
      return meta.threads[kinds.thread[kind]!] ?? UNKNOWN;
    default:
      return stacks.labelOf(kinds.stack[kind]!, kinds.forward[kind]!);
  }
}

function frameGroups(by: ByFrame, framesOf: (of: Stacks) => Frames, kinds: ReadonlyMap<number, Amounts>, { lane, stacks }: RangeContext): Group[] {
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
    if (group === undefined) groups.set(label, (group = emptyGroup(`${by}/${name}`, name, true)));
    return group;
  };
  for (const { stacks: of, amounts } of byStacks.values()) {
    const { isOwn, own, all } = framesOf(of);
    if (isOwn) count(groupOf(own), amounts, of);
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

function emptyGroup(id: string, name: string, isInclusive: boolean): Group {
  return { id, name, where: '', ...noAmounts(), inclusive: isInclusive ? 0 : null, stack: 0, example: null };
}

function rowOf({ id, name, where, bytes, byte_seconds, allocations, growth, end_bytes, inclusive, stack }: Group): RangeRow {
  return { id, name, where, bytes, byte_seconds, allocations, growth, end_bytes, inclusive, stack };
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

function stacksOf({ kinds }: RangeContext['lane'], kind: number): Stacks {
  return { stack: kinds.stack[kind]!, forward: kinds.forward[kind]! };
}

const UNKNOWN = 'unknown';
