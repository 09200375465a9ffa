// Tables over a standalone file, with the groups, sums and orders of viewer/questions/table.h.

import { formatBytes } from '../../base/format_bytes';
import { NEVER, type Table, type TableQuery, type TableRow } from '../protocol';
import { hex, type BlockTest, type FilterContext } from './block_filter';
import { addressOf } from './lane_data';
import { type Absent, forEachBlock } from './scope_blocks';

const MAX_LIFETIMES = 1_000_000;

interface GroupName {
  readonly id: string;
  readonly name: string;
  readonly where: string;
  /** Groups with equal keys are ordered by this, ascending. */
  readonly order: number | string;
}

interface Group extends GroupName {
  bytes: number;
  blocks: number;
  sizes: number;
  counted: number;
  key: number; // what 'growth' and 'rate' sort by
  largest: number;
  stack: number;
  peak: number;
  lifetimes: number[];
}

export interface TableContext extends FilterContext {
  readonly ns: Float64Array;
  readonly test: BlockTest | null;
  readonly absent: Absent;
}

export function makeTable(query: TableQuery, context: TableContext): Table {
  return query.by === 'block' ? blockTable(query, context) : groupTable(query, context);
}

// -- By group ------------------------------------------------------------------------------------

function groupTable(query: TableQuery, context: TableContext): Table {
  const { lane, test } = context;
  const { kind } = lane.blocks;
  const size = lane.kinds.size;
  const groupOf = grouper(query.by, context);
  const present = new Set<Group>();
  let bytes = 0;
  let blocks = 0;
  forEachBlock(lane, query, test, (block, sign) => {
    const k = kind[block]!;
    const group = groupOf(k);
    present.add(group);
    group.bytes += sign * size[k]!;
    group.blocks += sign;
    group.sizes += size[k]!;
    group.counted++;
    if (size[k]! > group.largest) {
      group.largest = size[k]!;
      group.stack = lane.kinds.stack[k]!;
    }
    if (group.lifetimes.length < MAX_LIFETIMES) {
      const lifetime = lifetimeOf(context, block);
      if (lifetime !== null) group.lifetimes.push(lifetime);
    }
    bytes += sign * size[k]!;
    blocks += sign;
  });
  const peaks = peaksOf(query, context);
  for (const group of present) group.peak = peaks.get(group.id) ?? 0;
  const absent = absentGroup(context.absent);
  if (absent !== null) {
    present.add(absent);
    bytes += absent.bytes;
    blocks += absent.blocks;
  }
  countKeys(query, context, groupOf);
  const sorted = [...present].sort(groupOrder(query));
  const page = sorted.slice(query.offset, query.offset + query.limit);
  const lines = sparklines(query, context, groupOf, page);
  return {
    rows: page.map((group, i) => ({
      id: group.id,
      name: group.name,
      where: group.where,
      bytes: group.bytes,
      blocks: group.blocks,
      peak_bytes: group.peak,
      mean_size: group.sizes / group.counted,
      median_lifetime_ns: median(group.lifetimes),
      block: null,
      stack: group.stack,
      sparkline: [...lines[i]!],
    })),
    total_rows: present.size,
    total_bytes: bytes,
    total_blocks: blocks,
  };
}

/** Returns a row for what the file has no blocks of, so that rows add up to what the lane holds. */
function absentGroup(absent: Absent): Group | null {
  if (absent.blocks === 0 && absent.bytes === 0) return null;
  return {
    ...newGroup({ id: 'omitted', name: 'left out of this file', where: '', order: '' }),
    bytes: absent.bytes,
    blocks: absent.blocks,
    sizes: Math.abs(absent.bytes),
    counted: Math.max(1, Math.abs(absent.blocks)),
    peak: Math.max(0, absent.bytes),
  };
}

function newGroup(name: GroupName): Group {
  return { ...name, bytes: 0, blocks: 0, sizes: 0, counted: 0, key: 0, largest: -1, stack: 0, peak: 0, lifetimes: [] };
}

/** Returns a function from kinds of blocks to their groups. */
function grouper(by: TableQuery['by'], context: TableContext): (kind: number) => Group {
  const byId = new Map<string, Group>();
  const byKind: (Group | undefined)[] = [];
  return (kind) => {
    let group = byKind[kind];
    if (group === undefined) {
      const name = nameOf(by, kind, context);
      group = byId.get(name.id) ?? newGroup(name);
      byId.set(name.id, group);
      byKind[kind] = group;
    }
    return group;
  };
}

function nameOf(by: TableQuery['by'], kind: number, { meta, stacks, lane }: TableContext): GroupName {
  const { kinds } = lane;
  const stack = kinds.stack[kind]!;
  const forward = kinds.forward[kind]!;
  const own = stacks.ownOf(stack, forward);
  switch (by) {
    case 'stack': {
      const isUnknown = stack === 0 && forward === 0;
      return { id: `stack/${stack}${forward === 0 ? '' : `+${forward}`}`, name: stacks.labelOf(stack, forward), where: '', order: isUnknown ? Infinity : forward * 2 ** 32 + stack };
    }
    case 'function':
      return { id: `function/${own?.functionLabel ?? 'unknown'}`, name: own?.functionLabel ?? 'unknown', where: own?.place ?? '', order: own?.functionLabel ?? '\uffff' };
    case 'file': {
      const label = own !== null && own.fileLabel !== '' ? own.fileLabel : null;
      return { id: `file/${label ?? 'unknown'}`, name: label ?? 'unknown', where: '', order: label ?? '\uffff' };
    }
    case 'category': {
      const code = kinds.category[kind]!;
      return { id: `category/${code}`, name: meta.categories[code] ?? 'unknown', where: '', order: code };
    }
    case 'size': {
      const size = kinds.size[kind]!;
      return { id: `size/${size}`, name: formatBytes(size), where: '', order: size };
    }
    case 'stream': {
      const name = meta.streams[kinds.stream[kind]!] ?? 'unknown';
      return { id: `stream/${name}`, name, where: '', order: name === 'unknown' ? Infinity : Number(name) };
    }
    case 'thread': {
      const name = meta.threads[kinds.thread[kind]!] ?? 'unknown';
      return { id: `thread/${name}`, name, where: '', order: name === 'unknown' ? Infinity : Number(name) };
    }
    case 'block':
      return { id: '', name: '', where: '', order: 0 };
  }
}

interface Peaks {
  readonly key: string; // grouping and filter
  readonly ofGroup: ReadonlyMap<string, number>; // by id
}
// Those of the last table of each lane: they are the same at every moment, and most of a table's cost.
const lastPeaks = new WeakMap<FilterContext['lane'], Peaks>();

function peaksOf({ by, filter }: TableQuery, context: TableContext): Peaks['ofGroup'] {
  const key = JSON.stringify([by, filter]);
  let peaks = lastPeaks.get(context.lane);
  if (peaks?.key !== key) lastPeaks.set(context.lane, (peaks = { key, ofGroup: computePeaks(context, grouper(by, context)) }));
  return peaks.ofGroup;
}

/** Computes the peak of each group by a walk over all births and deaths. */
function computePeaks({ lane, test }: TableContext, groupOf: (kind: number) => Group): Map<string, number> {
  const { count, birth, death, kind } = lane.blocks;
  const deaths: number[] = [];
  for (let i = 0; i < count; i++) if (death[i] !== NEVER) deaths.push(i);
  deaths.sort((a, b) => death[a]! - death[b]!);
  const live = new Map<Group, number>();
  let died = 0;
  const change = (block: number, sign: number): void => {
    if (test !== null && !test(block)) return;
    const group = groupOf(kind[block]!);
    const now = (live.get(group) ?? 0) + sign * lane.kinds.size[kind[block]!]!;
    live.set(group, now);
    group.peak = Math.max(group.peak, now);
  };
  for (let i = 0; i < count; i++) {
    while (died < deaths.length && death[deaths[died]!]! < birth[i]!) change(deaths[died++]!, -1);
    change(i, 1);
  }
  return new Map([...live.keys()].map((group) => [group.id, group.peak]));
}

function countKeys(query: TableQuery, context: TableContext, groupOf: (kind: number) => Group): void {
  const { lane, test } = context;
  const { kind } = lane.blocks;
  if (query.sort === 'growth') {
    forEachBlock(lane, { ...query, of: 'growth' }, test, (block, sign) => {
      groupOf(kind[block]!).key += sign * lane.kinds.size[kind[block]!]!;
    });
  }
  if (query.sort === 'rate') {
    forEachBlock(lane, { ...query, of: 'born' }, test, (block) => {
      groupOf(kind[block]!).key++;
    });
  }
}

function groupOrder(query: TableQuery): (a: Group, b: Group) => number {
  const sign = query.descending ? -1 : 1;
  const tie = (a: Group, b: Group): number => compare(a.order, b.order);
  if (query.sort === 'name') {
    const hasText = query.by === 'function' || query.by === 'file' || query.by === 'stack' || query.by === 'category';
    return (a, b) => (hasText ? sign * compare(a.name, b.name) || tie(a, b) : sign * tie(a, b));
  }
  const key = groupKey(query.sort);
  return (a, b) => sign * (key(a) - key(b)) || tie(a, b);
}

function groupKey(sort: TableQuery['sort']): (group: Group) => number {
  switch (sort) {
    case 'bytes':
      return (g) => g.bytes;
    case 'blocks':
      return (g) => g.blocks;
    case 'peak':
      return (g) => g.peak;
    case 'growth':
    case 'rate':
      return (g) => g.key;
    case 'lifetime': {
      const known = new Map<Group, number>();
      return (g) => {
        let value = known.get(g);
        if (value === undefined) known.set(g, (value = median(g.lifetimes) ?? Number.MAX_VALUE));
        return value;
      };
    }
    case 'name':
      return () => 0;
  }
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Returns the bytes live at the midpoint of each of `columns` equal parts of the recording, by row
 * of the page.
 */
function sparklines(query: TableQuery, context: TableContext, groupOf: (kind: number) => Group, page: readonly Group[]): Float64Array[] {
  const { lane, test, ns } = context;
  const columns = query.sparkline;
  const lines = page.map(() => new Float64Array(columns));
  if (columns === 0) return lines;
  const rowOf = new Map(page.map((group, i) => [group, i]));
  const events = Array.from({ length: columns }, (_, i) => sparklineEvent(i, columns, ns.length - 1));
  const { count, birth, death, kind } = lane.blocks;
  for (let i = 0; i < count; i++) {
    if (test !== null && !test(i)) continue;
    const row = rowOf.get(groupOf(kind[i]!));
    if (row === undefined) continue;
    const size = lane.kinds.size[kind[i]!]!;
    const line = lines[row]!;
    for (let c = firstAtOrAfter(events, birth[i]!); c < columns && events[c]! < death[i]!; c++) line[c]! += size;
  }
  return lines;
}

function firstAtOrAfter(events: readonly number[], event: number): number {
  let from = 0;
  let to = events.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (events[middle]! < event) from = middle + 1;
    else to = middle;
  }
  return from;
}

export function sparklineEvent(column: number, columns: number, lastEvent: number): number {
  return Math.floor(((2 * column + 1) * lastEvent) / (2 * columns));
}

export function lifetimeOf({ lane, ns }: { lane: FilterContext['lane']; ns: Float64Array }, block: number): number | null {
  const birth = lane.blocks.birth[block]!;
  const death = lane.blocks.death[block]!;
  return birth === 0 || death === NEVER ? null : ns[death]! - ns[birth]!;
}

function median(values: number[]): number | null {
  if (values.length === 0) return null;
  values.sort((a, b) => a - b);
  return values[Math.floor((values.length - 1) / 2)]!;
}

// -- Block by block ------------------------------------------------------------------------------

interface BlockEntry {
  readonly block: number;
  readonly sign: 1 | -1;
  readonly key: number | string;
}

function blockTable(query: TableQuery, context: TableContext): Table {
  const { lane, test } = context;
  const sizeOf = (block: number): number => lane.kinds.size[lane.blocks.kind[block]!]!;
  const key = blockKey(query.sort, context);
  const entries: BlockEntry[] = [];
  let bytes = 0;
  let blocks = 0;
  forEachBlock(lane, query, test, (block, sign) => {
    entries.push({ block, sign, key: key(block, sign) });
    bytes += sign * sizeOf(block);
    blocks += sign;
  });
  const direction = query.descending ? -1 : 1;
  entries.sort((a, b) => direction * compare(a.key, b.key) || a.block - b.block);
  return {
    rows: entries.slice(query.offset, query.offset + query.limit).map((entry) => blockRow(entry, query, context)),
    total_rows: entries.length,
    total_bytes: bytes,
    total_blocks: blocks,
  };
}

function blockKey(sort: TableQuery['sort'], context: TableContext): (block: number, sign: number) => number | string {
  const { lane, stacks } = context;
  const sizeOf = (block: number): number => lane.kinds.size[lane.blocks.kind[block]!]!;
  switch (sort) {
    case 'bytes':
    case 'growth':
      return (block, sign) => sign * sizeOf(block);
    case 'peak':
      return sizeOf;
    case 'blocks':
    case 'rate':
      return (_, sign) => sign;
    case 'lifetime':
      return (block) => lifetimeOf(context, block) ?? Number.MAX_VALUE;
    case 'name':
      return (block) => {
        const k = lane.blocks.kind[block]!;
        return stacks.labelOf(lane.kinds.stack[k]!, lane.kinds.forward[k]!);
      };
  }
}

function blockRow({ block, sign }: BlockEntry, query: TableQuery, context: TableContext): TableRow {
  const { lane, meta, stacks, texts, ns } = context;
  const { birth, death, kind, row } = lane.blocks;
  const k = kind[block]!;
  const size = lane.kinds.size[k]!;
  const given = texts.names[String(lane.kinds.name[k]!)] ?? '';
  return {
    id: `block/${row[block]!}`,
    name: given !== '' ? given : stacks.labelOf(lane.kinds.stack[k]!, lane.kinds.forward[k]!),
    where: '',
    bytes: sign * size,
    blocks: sign,
    peak_bytes: size,
    mean_size: size,
    median_lifetime_ns: lifetimeOf(context, block),
    block: { address: hex(addressOf(lane, block)), category: meta.categories[lane.kinds.category[k]!] ?? 'unknown', birth: birth[block]!, birth_ns: ns[birth[block]!]! },
    stack: lane.kinds.stack[k]!,
    sparkline: Array.from({ length: query.sparkline }, (_, c) => {
      const event = sparklineEvent(c, query.sparkline, ns.length - 1);
      return birth[block]! <= event && event < death[block]! ? size : 0;
    }),
  };
}
