// Answers the other questions over a generated recording directly from its blocks.

import { NEVER, NO_ROW } from '../protocol';
import { asksAddresses, textsOfFrame, textTest } from '../text_filter';
import type * as p from '../protocol';
import { CATEGORIES, type Block, type Recording } from './recording';
import { positionOf, runningTotal, selectCurve } from './select';

export const STREAMS: readonly string[] = ['0', '7'];
export const THREADS: readonly string[] = ['python3 (101)', 'autograd (102)'];

export function stackInfo(recording: Recording, stack: number): p.StackInfo {
  const { key, label, frames } = recording.stacks[stack] ?? recording.stacks[0]!;
  return { stack, key, label, frames };
}

/** Returns the blocks of a scope, each with its sign. */
export function inScope(recording: Recording, scope: p.Scope): { block: Block; sign: number }[] {
  const result: { block: Block; sign: number }[] = [];
  const heldAfter = (block: Block, event: number): boolean => block.birth <= event && event < block.death;
  for (const block of recording.blocks) {
    if (block.lane !== scope.lane || !matches(recording, block, scope.filter)) continue;
    const bornIn = block.birth > scope.from && block.birth <= scope.to;
    const sign = {
      live: Number(heldAfter(block, scope.to)),
      growth: Number(heldAfter(block, scope.to)) - Number(heldAfter(block, scope.from)),
      born: Number(bornIn),
      kept: Number(bornIn && block.death > scope.to),
    }[scope.of];
    if (sign !== 0) result.push({ block, sign });
  }
  return result;
}

/** Returns whether a filter matches a block. */
export function matches(recording: Recording, block: Block, filter: p.Filter): boolean {
  const stack = recording.stacks[block.stack]!;
  if (filter.text !== '') {
    const fits = textTest(filter.text);
    const isThere = asksAddresses(filter.text) && fits(addressOf(block.place));
    if (!isThere && !stack.frames.some((frame) => textsOfFrame(frame).some(fits))) return false;
  }
  return (
    (filter.category === '' || CATEGORIES[block.category] === filter.category) &&
    (filter.stack === null || block.stack === filter.stack) &&
    (filter.key === null || stack.key === filter.key) &&
    (filter.stream === '' || STREAMS[block.stream] === filter.stream) &&
    (filter.thread === '' || THREADS[block.thread] === filter.thread) &&
    (filter.min_size === null || block.size >= filter.min_size) &&
    (filter.max_size === null || block.size <= filter.max_size)
  );
}

export function blockDetails(recording: Recording, row: number): p.BlockDetails {
  const block = recording.blocks[row]!;
  const ns = (event: number): number => positionOf(recording, 'time', event);
  const same = recording.blocks.filter((each) => each.stack === block.stack && each.lane === block.lane);
  const completed = block.pending ? Math.min(recording.times.length, block.death + 9) : block.death;
  const step = recording.steps.begin.filter((begin) => begin < block.birth).length;
  const segment = recording.blocks[block.segment]!;
  return {
    row, lane: block.lane, address: addressOf(block.place), size: block.size, requested: block.lane === 0 ? block.size - 200 : null, name: '',
    category: CATEGORIES[block.category]!, reason: 'made in the phase that makes these', confidence: 'high',
    stream: STREAMS[block.stream]!, thread: THREADS[block.thread]!, pool: 'large',
    tensor: block.lane === 0 ? 'float32 [8, 128]' : '', alive: CATEGORIES[block.category] === 'activations' ? 'saved for backward by SoftmaxBackward0 (model.py:31)' : '',
    birth: block.birth, birth_ns: ns(block.birth), death: block.death, death_ns: block.death === NEVER ? null : ns(block.death),
    completed, completed_ns: completed === NEVER ? null : ns(completed), step: step === 0 ? null : step, phase: CATEGORIES[block.category] === 'gradients' ? 'backward' : 'forward',
    stack: stackInfo(recording, block.stack), free_stack: null,
    forward_stack: block.category === 2 ? stackInfo(recording, recording.stacks.findIndex((stack) => stack.label.includes('forward'))) : null,
    segment: block.lane === 0 ? { address: addressOf(segment.place), size: segment.size, offset: block.place - segment.place } : null,
    before: neighbour(recording, block, -1), after: neighbour(recording, block, 1),
    same_stack: { blocks: same.length, live_bytes: sum(same.filter((each) => each.birth <= block.birth && block.birth < each.death)), peak_bytes: sum(same) },
  };
}

export function addressOf(place: number): string {
  return `0x${(0x7f0000000000 + place).toString(16)}`;
}

function sum(blocks: readonly Block[]): number {
  return blocks.reduce((bytes, block) => bytes + block.size, 0);
}

function neighbour(recording: Recording, block: Block, side: -1 | 1): p.Neighbour | null {
  if (block.lane !== 0) return null;
  const segment = recording.blocks[block.segment]!;
  const held = recording.blocks.filter((each) => each.lane === 0 && each.segment === block.segment && each.birth < block.birth && each.death > block.birth);
  const edge = side < 0 ? block.place : block.place + block.size;
  const touching = held.find((each) => (side < 0 ? each.place + each.size : each.place) === edge);
  if (touching !== undefined) return { row: touching.row, size: touching.size, label: recording.stacks[touching.stack]!.label };
  const limit = side < 0
    ? Math.max(segment.place, ...held.filter((each) => each.place < edge).map((each) => each.place + each.size))
    : Math.min(segment.place + segment.size, ...held.filter((each) => each.place > edge).map((each) => each.place));
  return limit === edge ? null : { row: NO_ROW, size: Math.abs(limit - edge), label: 'free' };
}

export function passingOf(recording: Recording, query: p.PassingQuery): p.PassingCurve {
  const blocks = recording.blocks.filter((block) => matches(recording, block, query.filter));
  const { series } = selectCurve({ ...recording, blocks }, query);
  return { query, live: series.get('live')!.mid };
}

export function flameOf(recording: Recording, query: p.FlameQuery): p.FlameTree {
  const names: string[] = ['all'];
  const nameIds = new Map<string, number>([['all', 0]]);
  const nodes = [{ parent: 0, name: 0, bytes: 0, blocks: 0, before: 0 }];
  const children = new Map<string, number>();
  const add = (scope: p.Scope, field: 'bytes' | 'before'): void => {
    for (const { block, sign } of inScope(recording, scope)) {
      const frames = recording.stacks[block.stack]!.frames.filter((frame) => !query.folded || frame.kind !== 'folded');
      const path = query.inverted ? frames : [...frames].reverse();
      let at = 0;
      for (const frame of [null, ...path]) {
        if (frame !== null) {
          const name = `${frame.function}\t${frame.file}:${frame.line}\t${frame.kind}`;
          if (!nameIds.has(name)) nameIds.set(name, names.push(name) - 1);
          const child = `${at}/${name}`;
          if (!children.has(child)) children.set(child, nodes.push({ parent: at, name: nameIds.get(name)!, bytes: 0, blocks: 0, before: 0 }) - 1);
          at = children.get(child)!;
        }
        nodes[at]![field] += sign * block.size;
        if (field === 'bytes') nodes[at]!.blocks += sign;
      }
    }
  };
  add(query, 'bytes');
  if (query.other !== null) add({ ...query, ...query.other, of: 'live' }, 'before');
  return {
    parent: Uint32Array.from(nodes, (node) => node.parent), bytes: Float64Array.from(nodes, (node) => node.bytes),
    blocks: Float64Array.from(nodes, (node) => node.blocks), before: query.other === null ? new Float64Array(0) : Float64Array.from(nodes, (node) => node.before),
    name: Uint32Array.from(nodes, (node) => node.name), names, total: nodes[0]!.bytes,
  };
}

export function tableOf(recording: Recording, query: p.TableQuery): p.Table {
  const groups = new Map<string, { name: string; where: string; stack: number; members: { block: Block; sign: number }[] }>();
  for (const member of inScope(recording, query)) {
    const { id, name, where } = groupOf(recording, query.by, member.block);
    if (!groups.has(id)) groups.set(id, { name, where, stack: member.block.stack, members: [] });
    groups.get(id)!.members.push(member);
  }
  const rows = [...groups].map(([id, group]): p.TableRow & { lifetime: number } => {
    const bytes = group.members.reduce((total, { block, sign }) => total + sign * block.size, 0);
    const lives = group.members.flatMap(({ block }) => (block.death === NEVER ? [] : [positionOf(recording, 'time', block.death) - positionOf(recording, 'time', block.birth)])).sort((a, b) => a - b);
    const median = lives[lives.length >> 1] ?? null;
    const total = peakOf(recording, group.members.map(({ block }) => block));
    return {
      id, name: group.name, where: group.where, bytes, blocks: group.members.length, peak_bytes: Math.max(...total), mean_size: bytes / group.members.length,
      median_lifetime_ns: median, stack: group.stack, sparkline: downsample(total, query.sparkline), lifetime: median ?? Infinity,
    };
  });
  const by = (row: (typeof rows)[number]): number => ({ bytes: row.bytes, blocks: row.blocks, peak: row.peak_bytes, growth: row.bytes, rate: row.blocks, lifetime: row.lifetime, name: 0 })[query.sort];
  rows.sort((a, b) => (query.sort === 'name' ? a.name.localeCompare(b.name) : by(a) - by(b)) * (query.descending ? -1 : 1));
  return {
    rows: rows.slice(query.offset, query.offset + query.limit), total_rows: rows.length,
    total_bytes: rows.reduce((total, row) => total + row.bytes, 0), total_blocks: rows.reduce((total, row) => total + row.blocks, 0),
  };
}

function groupOf(recording: Recording, by: p.TableQuery['by'], block: Block): { id: string; name: string; where: string } {
  const frame = recording.stacks[block.stack]!.frames[1]!;
  const where = `${frame.file.replace('/src/', '')}:${frame.line}`;
  switch (by) {
    case 'stack':
      return { id: `stack/${block.stack}`, name: recording.stacks[block.stack]!.label, where };
    case 'function':
      return { id: `function/${frame.function}`, name: frame.function, where };
    case 'file':
      return { id: `file/${frame.file}`, name: frame.file, where: frame.file };
    case 'category':
      return { id: `category/${block.category}`, name: CATEGORIES[block.category]!, where: '' };
    case 'size':
      return { id: `size/${block.size}`, name: String(block.size), where: '' };
    case 'stream':
      return { id: `stream/${block.stream}`, name: STREAMS[block.stream]!, where: '' };
    case 'thread':
      return { id: `thread/${block.thread}`, name: THREADS[block.thread]!, where: '' };
    case 'block':
      return { id: `block/${block.row}`, name: addressOf(block.place), where };
  }
}

function peakOf(recording: Recording, blocks: readonly Block[]): Float64Array {
  return runningTotal({ ...recording, blocks: blocks.map((block) => ({ ...block, lane: 0 })) }, 0);
}

function downsample(values: Float64Array, columns: number): number[] {
  return Array.from({ length: columns }, (_, c) => values[Math.floor(((c + 0.5) * values.length) / columns)]!);
}

export function segmentsAt(recording: Recording, event: number): p.Segments {
  const live = (block: Block): boolean => block.birth <= event && event < block.death;
  const about = recording.blocks.find((block) => block.birth === event || block.death === event);
  const segments = recording.blocks.filter((block) => block.lane === 1 && live(block)).map((segment): p.SegmentState => {
    const inside = recording.blocks.filter((block) => block.lane === 0 && block.segment === segment.row && live(block)).sort((a, b) => a.place - b.place);
    return {
      address: addressOf(segment.place), size: segment.size, pool: 'large', stream: '0', expandable: false, stack: segment.stack,
      offset: inside.map((block) => block.place - segment.place), bytes: inside.map((block) => block.size), requested: inside.map((block) => block.size - 200),
      row: inside.map((block) => block.row), pending: inside.map(() => 0), category: inside.map((block) => block.category),
      key: inside.map((block) => recording.stacks[block.stack]!.key),
    };
  });
  const liveBytes = sum(recording.blocks.filter((block) => block.lane === 0 && live(block)));
  const verb = about?.birth === event ? 'alloc' : 'free';
  return {
    event, ns: positionOf(recording, 'time', event), row: about?.row ?? NO_ROW, segments,
    what: about === undefined ? 'the recording began' : `${verb} ${about.size} bytes at ${addressOf(about.place)} (${recording.stacks[about.stack]!.label})`,
    live_bytes: liveBytes, reserved_bytes: segments.reduce((total, segment) => total + segment.size, 0),
    largest_hole: Math.max(0, ...segments.map((segment) => segment.size - segment.bytes.reduce((total, bytes) => total + bytes, 0))),
  };
}

export function found(recording: Recording, scope: p.Scope, after: number, limit: number): p.Found {
  const all = inScope(recording, scope).map(({ block }) => block).sort((a, b) => a.birth - b.birth);
  const begin = after === NO_ROW ? 0 : all.findIndex((block) => block.row === after) + 1;
  const page = all.slice(begin, begin + limit);
  return {
    rows: page.map((block) => block.row), birth: page.map((block) => block.birth), death: page.map((block) => block.death),
    size: page.map((block) => block.size), total: all.length,
  };
}
