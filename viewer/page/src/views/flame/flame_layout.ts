// Lays out the frames of a flame graph, in fractions of the width and in rows. Pure.
//
// A frame is as wide as its weight: its bytes, or the larger of its bytes at two moments, and never
// less than the sum of its children. So frames that shrank and frames that grew are both visible.
// Children are placed side by side, the widest first, ties by name, so that the same tree always
// gives the same picture. Frames narrower than `narrowest` are merged with their narrow neighbours
// into one rectangle without a node, and nothing is laid out below it. A row has at most width /
// narrowest rectangles, whatever the tree.

import type { FlameTree } from '../../data/protocol';

export const MERGED = -1;

/** A tree with the data that every layout of it needs, computed once per answer. */
export interface WeighedTree {
  readonly tree: FlameTree;
  readonly weight: Float64Array;
  readonly path: Uint32Array; // hash of the names from the root, stable between answers
  readonly children: readonly (readonly number[])[]; // widest first
}

/** One rectangle per index; those of row r are [rowBegin[r], rowBegin[r + 1]), left to right. */
export interface FlameLayout {
  readonly node: Int32Array; // MERGED: several frames that are too narrow
  readonly left: Float64Array; // fraction of the width
  readonly right: Float64Array;
  readonly merged: Uint32Array; // how many nodes a merged rectangle represents
  readonly rowBegin: readonly number[];
}

const FNV_PRIME = 0x01000193;
const FNV_OFFSET = 0x811c9dc5;

function hashOn(hash: number, text: string): number {
  let value = hash;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), FNV_PRIME);
  }
  return Math.imul(value ^ 0xff, FNV_PRIME) >>> 0;
}

export function weigh(tree: FlameTree): WeighedTree {
  const count = tree.parent.length;
  const weight = new Float64Array(count);
  const below = new Float64Array(count);
  const path = new Uint32Array(count);
  const children: number[][] = Array.from({ length: count }, () => []);
  const differs = tree.before.length === count;
  for (let node = count - 1; node >= 0; node--) {
    const own = Math.max(Math.abs(tree.bytes[node]!), differs ? tree.before[node]! : 0);
    weight[node] = Math.max(own, below[node]!);
    if (node > 0) below[tree.parent[node]!]! += weight[node]!;
  }
  for (let node = 0; node < count; node++) {
    if (node === 0) continue;
    const parent = tree.parent[node]!;
    path[node] = hashOn(parent === 0 ? FNV_OFFSET : path[parent]!, tree.names[tree.name[node]!] ?? '') || 1;
    children[parent]!.push(node);
  }
  for (const list of children) {
    list.sort((a, b) => weight[b]! - weight[a]! || (tree.names[tree.name[a]!]! < tree.names[tree.name[b]!]! ? -1 : 1));
  }
  return { tree, weight, path, children };
}

/** Returns the node whose path has that hash, or the root if there is none. */
export function nodeOfPath(weighed: WeighedTree, hash: number): number {
  return hash === 0 ? 0 : Math.max(0, weighed.path.indexOf(hash));
}

/** Returns the nodes from the root down to `node`. */
export function ancestors(tree: FlameTree, node: number): number[] {
  const chain = [node];
  for (let at = node; at !== 0; ) {
    at = tree.parent[at]!;
    chain.push(at);
  }
  return chain.reverse();
}

interface Span {
  readonly node: number;
  readonly left: number;
  readonly right: number;
}

/**
 * Lays out the tree. `focus` and its ancestors fill the width; the frames below `focus` share it.
 */
export function layOut(weighed: WeighedTree, focus: number, narrowest: number): FlameLayout {
  const out = new LayoutBuilder();
  const above = ancestors(weighed.tree, focus);
  for (const node of above) {
    out.add(node, 0, 1, 0);
    out.endRow();
  }
  let row: Span[] = [{ node: focus, left: 0, right: 1 }];
  while (row.length > 0) {
    const next: Span[] = [];
    for (const span of row) layOutChildren(weighed, span, narrowest, out, next);
    if (out.rowIsEmpty()) break;
    out.endRow();
    row = next;
  }
  return out.done();
}

function layOutChildren(
  weighed: WeighedTree,
  span: Span,
  narrowest: number,
  out: LayoutBuilder,
  next: Span[],
): void {
  const total = weighed.weight[span.node]!;
  if (!(total > 0)) return;
  const scale = (span.right - span.left) / total;
  const children = weighed.children[span.node]!;
  let left = span.left;
  for (let i = 0; i < children.length; i++) {
    const width = weighed.weight[children[i]!]! * scale;
    if (width < narrowest) {
      // The widest come first, so all that follow are too narrow as well.
      let rest = 0;
      for (let k = i; k < children.length; k++) rest += weighed.weight[children[k]!]!;
      if (rest > 0) out.add(MERGED, left, Math.min(span.right, left + rest * scale), children.length - i);
      return;
    }
    const right = Math.min(span.right, left + width);
    out.add(children[i]!, left, right, 0);
    next.push({ node: children[i]!, left, right });
    left = right;
  }
}

class LayoutBuilder {
  private readonly node: number[] = [];
  private readonly left: number[] = [];
  private readonly right: number[] = [];
  private readonly merged: number[] = [];
  private readonly rowBegin: number[] = [0];

  add(node: number, left: number, right: number, merged: number): void {
    this.node.push(node);
    this.left.push(left);
    this.right.push(right);
    this.merged.push(merged);
  }

  rowIsEmpty(): boolean {
    return this.rowBegin.at(-1) === this.node.length;
  }

  endRow(): void {
    this.rowBegin.push(this.node.length);
  }

  done(): FlameLayout {
    return {
      node: Int32Array.from(this.node),
      left: Float64Array.from(this.left),
      right: Float64Array.from(this.right),
      merged: Uint32Array.from(this.merged),
      rowBegin: this.rowBegin,
    };
  }
}

/** Returns the index of the rectangle at (fraction of the width, row), or -1 if there is none. */
export function hit(layout: FlameLayout, x: number, row: number): number {
  const begin = layout.rowBegin[row];
  const end = layout.rowBegin[row + 1];
  if (begin === undefined || end === undefined) return -1;
  let low = begin;
  let high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (layout.right[middle]! <= x) low = middle + 1;
    else high = middle;
  }
  return low < end && layout.left[low]! <= x ? low : -1;
}
