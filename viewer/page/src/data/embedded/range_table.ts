// Tables of ranges over a standalone file, with the rows and sums of
// viewer/questions/range_table.h.

import { DataError } from '../data_source';
import type { EventRange, Frame, RangeAmounts, RangeQuery, RangeRow, RangeTable, RangeTotal } from '../protocol';
import { measureOf, secondsOf } from '../range_measures';
import { functionLabel } from '../text_filter';
import { fileName, placeOfFrame, type StackTable } from './file_data';
import { dtypeOf, roleOf, sharedText } from './lane_data';
import type { BoxContext } from './box_rows';
import { addTo, noAmounts, sumUpKinds, type Amounts, type RangeContext } from './range_amounts';
import { absentOf } from './scope_blocks';

/** The stack that allocated memory, and that of the forward call which caused it, or 0. */
interface Stacks {
  readonly stack: number;
  readonly forward: number;
}

/** What a kind of blocks, or a row, has in the range, and in the other range of the query. */
interface Sides {
  readonly range: Amounts;
  readonly other: Amounts;
}

interface Group extends Sides {
  readonly id: string;
  readonly name: string;
  where: string;
  inclusive: { range: number; other: number } | null;
  stack: number;
  example: Stacks | null; // the smallest that has a stack
}

/** The boxes of a query and of its other range; null: without a box. */
export interface Boxes {
  readonly range: BoxContext | null;
  readonly other: BoxContext | null;
}

export function makeRangeTable(query: RangeQuery, boxes: Boxes, context: RangeContext): RangeTable {
  const { kinds, peak, otherPeak } = sumUpSides(query, boxes, context);
  const within = withinOf(query.within);
  for (const [kind] of kinds) {
    if (within.blocks.some(([by, id]) => idOf(by, kind, context) !== id)) kinds.delete(kind);
  }
  const groups = groupsOf(query, within, kinds, context);
  if (query.within.length === 0) groups.push(...leftOut(query, peak, otherPeak, context));
  const total = noSides();
  for (const group of groups) addSides(total, group);
  const ofRange = totalOf(query, total.range, peak, context);
  const ofOther = query.other === null ? null : totalOf(query.other, total.other, otherPeak, context);
  const rows = groups.map((group) => rowOf(group, query.other !== null)).sort(orderOf(query, ofRange, ofOther));
  return { rows: rows.slice(query.offset, query.offset + query.limit), total_rows: rows.length, ...ofRange, other: ofOther };
}

function totalOf({ from, to }: EventRange, total: RangeAmounts, peak: number, { ns }: RangeContext): RangeTotal {
  return { total, peak_event: peak, peak_ns: ns[peak]!, from_ns: ns[from]!, to_ns: ns[to]! };
}

function sumUpSides(query: RangeQuery, boxes: Boxes, context: RangeContext): { readonly kinds: Map<number, Sides>; readonly peak: number; readonly otherPeak: number } {
  const ofRange = sumUpKinds(query, boxes.range, context);
  const kinds = new Map<number, Sides>();
  for (const [kind, range] of ofRange.kinds) kinds.set(kind, { range, other: noAmounts() });
  if (query.other === null) return { kinds, peak: ofRange.peak, otherPeak: 0 };
  const ofOther = sumUpKinds(query.other, boxes.other, context);
  for (const [kind, other] of ofOther.kinds) kinds.set(kind, { range: kinds.get(kind)?.range ?? noAmounts(), other });
  return { kinds, peak: ofRange.peak, otherPeak: ofOther.peak };
}

function leftOut(query: RangeQuery, peak: number, otherPeak: number, { lane, test }: RangeContext): Group[] {
  const bytesAt = (event: number): number => absentOf(lane, { ...query, of: 'live', from: 0, to: event }, test).bytes;
  const amountsOf = ({ from, to, box }: EventRange, at: number): Amounts => {
    if (box !== null) return noAmounts();
    const end_bytes = bytesAt(to);
    return { bytes: bytesAt(at), byte_seconds: 0, allocations: 0, growth: end_bytes - bytesAt(from), end_bytes };
  };
  const range = amountsOf(query, peak);
  const other = query.other === null ? noAmounts() : amountsOf(query.other, otherPeak);
  if ([range, other].every(({ bytes, growth, end_bytes }) => bytes === 0 && growth === 0 && end_bytes === 0)) return [];
  const inclusive = isByFrame(query.by) ? { range: range.bytes, other: other.bytes } : null;
  return [{ id: 'omitted', name: 'left out of this file', where: '', range, other, inclusive, stack: 0, example: null }];
}

function noSides(): Sides {
  return { range: noAmounts(), other: noAmounts() };
}

function addSides(sum: Sides, { range, other }: Sides): void {
  addTo(sum.range, range);
  addTo(sum.other, other);
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

function groupsOf(query: RangeQuery, within: Within, kinds: ReadonlyMap<number, Sides>, context: RangeContext): Group[] {
  const framesOf = frameFinder(query, within, context.stacks);
  return isByFrame(query.by) ? frameGroups(query.by, framesOf, kinds, context) : kindGroups(query.by, within, framesOf, kinds, context);
}

function kindGroups(by: By, within: Within, framesOf: (of: Stacks) => Frames, kinds: ReadonlyMap<number, Sides>, context: RangeContext): Group[] {
  const groups = new Map<string, Group>();
  for (const [kind, sides] of kinds) {
    const stacks = stacksOf(context.lane, kind);
    const { isOwn, isAny } = framesOf(stacks);
    if (!isAny) continue;
    const id = idOf(by, kind, context);
    let group = groups.get(id);
    if (group === undefined) groups.set(id, (group = emptyGroup(id, nameOf(by, kind, context), within.frames.length > 0)));
    addInclusive(group, sides);
    if (isOwn) count(group, sides, stacks);
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

function frameGroups(by: ByFrame, framesOf: (of: Stacks) => Frames, kinds: ReadonlyMap<number, Sides>, { lane, stacks }: RangeContext): Group[] {
  const byStacks = new Map<string, { readonly stacks: Stacks; readonly sides: Sides }>();
  for (const [kind, sides] of kinds) {
    const of = stacksOf(lane, kind);
    const key = `${of.stack}+${of.forward}`;
    let known = byStacks.get(key);
    if (known === undefined) byStacks.set(key, (known = { stacks: of, sides: noSides() }));
    addSides(known.sides, sides);
  }
  const groups = new Map<string, Group>();
  const groupOf = (label: string): Group => {
    let group = groups.get(label);
    const name = label === '' ? UNKNOWN : label;
    if (group === undefined) groups.set(label, (group = emptyGroup(`${by}/${name}`, name, true)));
    return group;
  };
  for (const { stacks: of, sides } of byStacks.values()) {
    const { isOwn, own, all } = framesOf(of);
    if (isOwn) count(groupOf(own), sides, of);
    for (const label of all) addInclusive(groupOf(label), sides);
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
  return { id, name, where: '', ...noSides(), inclusive: isInclusive ? { range: 0, other: 0 } : null, stack: 0, example: null };
}

function rowOf({ id, name, where, range, other, inclusive, stack }: Group, hasOther: boolean): RangeRow {
  const ofOther = hasOther ? { ...other, inclusive: inclusive?.other ?? null } : null;
  return { id, name, where, ...range, inclusive: inclusive?.range ?? null, other: ofOther, stack };
}

function orderOf({ sort, side, descending }: RangeQuery, range: RangeTotal, other: RangeTotal | null): (a: RangeRow, b: RangeRow) => number {
  const sign = descending ? -1 : 1;
  const seconds = secondsOf(range);
  const otherSeconds = other === null ? 0 : secondsOf(other);
  const key = (row: RangeRow): number | string => {
    if (sort === 'name') return row.name;
    if (row.other === null || side === 'this') return measureOf(sort, row, seconds);
    const there = measureOf(sort, row.other, otherSeconds);
    return side === 'other' ? there : measureOf(sort, row, seconds) - there;
  };
  return (a, b) => sign * compare(key(a), key(b)) || compare(a.id, b.id);
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function addInclusive({ inclusive }: Group, { range, other }: Sides): void {
  if (inclusive === null) return;
  inclusive.range += range.bytes;
  inclusive.other += other.bytes;
}

function count(group: Group, sides: Sides, stacks: Stacks): void {
  addSides(group, sides);
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
