// Flame graphs over a standalone file, with the names and sums of viewer/questions/flame.h.

import type { Filter, FlameQuery, FlameTree, Frame } from '../protocol';
import { remember, type FilterContext } from './block_filter';
import { fileName, placeOfFrame, type StackTable } from './file_data';

export interface Weight {
  bytes: number;
  blocks: number;
}

/** What one category has of a stack. */
export interface StackWeight extends Weight {
  readonly stack: number;
  readonly forward: number; // 0 outside of backward passes
  readonly category: number;
}

export interface TreeStyle {
  readonly inverted: boolean;
  readonly folded: boolean;
  /** Line numbers are comparable only within one recording. */
  readonly withLines: boolean;
  readonly compares: boolean;
}

export class FlameTreeBuilder {
  private readonly parent: number[] = [];
  private readonly name: number[] = [];
  private readonly bytes: number[] = [];
  private readonly blocks: number[] = [];
  private readonly before: number[] = [];
  private readonly byCategory: Map<number, number>[] = []; // bytes of each node; empty in a comparison
  private readonly names: string[] = [];
  private readonly nameIndex = new Map<string, number>();
  private readonly children: Map<number, number>[] = [];

  constructor(private readonly style: TreeStyle) {
    this.node(0, 'all\t\tfolded', true);
  }

  /** Adds the weight of a stack to all nodes of its path. `forward`: 0 outside of backward passes. */
  addStack(stacks: StackTable, { stack, forward, category, ...weight }: StackWeight, isBefore: boolean): void {
    const calls = callsOf(stacks, stack, this.style);
    const caller = forward === 0 ? [] : callsOf(stacks, forward, this.style);
    const path = caller.length === 0 ? calls : [...calls, BACKWARD_PASS, ...caller];
    this.add(this.style.inverted ? path : [...path].reverse(), category, weight, isBefore);
  }

  /** Adds what is not in the file below the root, under a name that says so. */
  addAbsent(weight: Weight, isBefore: boolean): void {
    if (weight.bytes === 0 && weight.blocks === 0) return;
    this.count(0, UNKNOWN, weight, isBefore);
    this.count(this.node(0, 'left out of this file\t\tfolded', false), UNKNOWN, weight, isBefore);
  }

  build(): FlameTree {
    const most = this.byCategory.map(largest);
    return {
      parent: Uint32Array.from(this.parent),
      bytes: Float64Array.from(this.bytes),
      blocks: Float64Array.from(this.blocks),
      before: this.style.compares ? Float64Array.from(this.before) : new Float64Array(0),
      category: Uint8Array.from(most, ([category]) => category),
      category_bytes: Float64Array.from(most, ([, bytes]) => bytes),
      name: Uint32Array.from(this.name),
      names: this.names,
      total: this.bytes[0]!,
    };
  }

  private add(path: readonly Frame[], category: number, weight: Weight, isBefore: boolean): void {
    let node = 0;
    this.count(node, category, weight, isBefore);
    for (const frame of path) {
      const place = this.style.withLines ? placeOfFrame(frame) : fileName(frame.file);
      node = this.node(node, `${withoutTabs(frame.function)}\t${withoutTabs(place)}\t${frame.kind}`, false);
      this.count(node, category, weight, isBefore);
    }
    if (path.length === 0) this.count(this.node(0, 'unknown\t\tfolded', false), category, weight, isBefore);
  }

  private count(node: number, category: number, weight: Weight, isBefore: boolean): void {
    if (isBefore) {
      this.before[node]! += weight.bytes;
      return;
    }
    this.bytes[node]! += weight.bytes;
    this.blocks[node]! += weight.blocks;
    const categories = this.byCategory[node];
    categories?.set(category, (categories.get(category) ?? 0) + weight.bytes);
  }

  private node(parent: number, name: string, isRoot: boolean): number {
    let index = this.nameIndex.get(name);
    if (index === undefined) {
      this.nameIndex.set(name, (index = this.names.length));
      this.names.push(name);
    }
    const known = isRoot ? undefined : this.children[parent]!.get(index);
    if (known !== undefined) return known;
    const node = this.parent.length;
    this.parent.push(parent);
    this.name.push(index);
    this.bytes.push(0);
    this.blocks.push(0);
    this.before.push(0);
    if (!this.style.compares) this.byCategory.push(new Map());
    this.children.push(new Map());
    if (!isRoot) this.children[parent]!.set(index, node);
    return node;
  }
}

const UNKNOWN = 0; // category

/** Returns the category with most bytes, of several the first one. */
function largest(byCategory: ReadonlyMap<number, number>): readonly [category: number, bytes: number] {
  let most: readonly [number, number] = [UNKNOWN, 0];
  for (const each of byCategory) if (each[1] > most[1] || (each[1] === most[1] && each[0] < most[0])) most = each;
  return most;
}

// A name consists of three fields separated by tabs.
function withoutTabs(text: string): string {
  return text.replace(/[\t\n]/g, ' ');
}

// Separates the calls of a backward pass from those of the forward pass.
const BACKWARD_PASS: Frame = { function: 'backward pass', file: '', line: 0, library: '', kind: 'folded' };

/** Returns the calls of a stack, innermost first. */
function callsOf(stacks: StackTable, stack: number, style: TreeStyle): readonly Frame[] {
  const frames = stacks.framesOf(stack);
  if (!style.folded) return frames;
  const shown = frames.filter((frame) => frame.kind !== 'folded');
  // Keeps one frame of a stack that is only noise.
  return shown.length === 0 ? frames.slice(0, 1) : shown;
}

/**
 * Returns a test for kinds of blocks of the other file of a comparison: whether their stacks have
 * the same calls as those of `filter`, which are numbered in `named`; null if it has none. Calls are
 * compared without lines, which differ between versions of a program.
 */
export function sameCalls(filter: Filter, named: StackTable, { stacks, lane: { kinds } }: FilterContext): ((kind: number) => boolean) | null {
  const textOf = (table: StackTable, stack: number): string =>
    table.framesOf(stack).map((frame) => `${frame.function}\t${fileName(frame.file)}`).join('\n');
  const test = (stack: number | null): ((other: number) => boolean) => {
    if (stack === null) return () => true;
    const calls = textOf(named, stack);
    const known = new Map<number, boolean>();
    return (other) => remember(known, other, () => textOf(stacks, other) === calls);
  };
  if (filter.stack === null && filter.forward_stack === null) return null;
  const [isStack, isForward] = [test(filter.stack), test(filter.forward_stack)];
  return (kind) => isStack(kinds.stack[kind]!) && isForward(kinds.forward[kind]!);
}

export function styleOf(query: FlameQuery, withLines: boolean): TreeStyle {
  return { inverted: query.inverted, folded: query.folded, withLines, compares: query.other !== null };
}
