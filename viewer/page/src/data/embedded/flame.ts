// Flame graphs over a standalone file, with the names and sums of viewer/questions/flame.h.

import type { FlameQuery, FlameTree, Frame } from '../protocol';
import { fileName, placeOfFrame, type StackTable } from './file_data';

export interface Weight {
  bytes: number;
  blocks: number;
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
  private readonly names: string[] = [];
  private readonly nameIndex = new Map<string, number>();
  private readonly children: Map<number, number>[] = [];

  constructor(private readonly style: TreeStyle) {
    this.node(0, 'all\t\tfolded', true);
  }

  /** Adds the weight of a stack to all nodes of its path. `forward`: 0 outside of backward passes. */
  addStack(stacks: StackTable, stack: number, forward: number, weight: Weight, isBefore: boolean): void {
    const calls = callsOf(stacks, stack, this.style);
    const caller = forward === 0 ? [] : callsOf(stacks, forward, this.style);
    const path = caller.length === 0 ? calls : [...calls, BACKWARD_PASS, ...caller];
    this.add(this.style.inverted ? path : [...path].reverse(), weight, isBefore);
  }

  /** Adds what is not in the file below the root, under a name that says so. */
  addAbsent(weight: Weight, isBefore: boolean): void {
    if (weight.bytes === 0 && weight.blocks === 0) return;
    this.count(0, weight, isBefore);
    this.count(this.node(0, 'left out of this file\t\tfolded', false), weight, isBefore);
  }

  build(): FlameTree {
    return {
      parent: Uint32Array.from(this.parent),
      bytes: Float64Array.from(this.bytes),
      blocks: Float64Array.from(this.blocks),
      before: this.style.compares ? Float64Array.from(this.before) : new Float64Array(0),
      name: Uint32Array.from(this.name),
      names: this.names,
      total: this.bytes[0]!,
    };
  }

  private add(path: readonly Frame[], weight: Weight, isBefore: boolean): void {
    let node = 0;
    this.count(node, weight, isBefore);
    for (const frame of path) {
      const place = this.style.withLines ? placeOfFrame(frame) : fileName(frame.file);
      node = this.node(node, `${withoutTabs(frame.function)}\t${withoutTabs(place)}\t${frame.kind}`, false);
      this.count(node, weight, isBefore);
    }
    if (path.length === 0) this.count(this.node(0, 'unknown\t\tfolded', false), weight, isBefore);
  }

  private count(node: number, weight: Weight, isBefore: boolean): void {
    if (isBefore) {
      this.before[node]! += weight.bytes;
      return;
    }
    this.bytes[node]! += weight.bytes;
    this.blocks[node]! += weight.blocks;
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
    this.children.push(new Map());
    if (!isRoot) this.children[parent]!.set(index, node);
    return node;
  }
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

export function styleOf(query: FlameQuery, withLines: boolean): TreeStyle {
  return { inverted: query.inverted, folded: query.folded, withLines, compares: query.other !== null };
}
