// Names and descriptions of the nodes of a flame graph.

import { formatBytes, formatDelta, formatPercent } from '../../base/format_bytes';
import { plural } from '../../base/plural';
import { words } from '../../base/words';
import type { FlameTree } from '../../data/protocol';

export interface FrameName {
  readonly function: string;
  readonly where: string; // 'model.py:88'; '' if unknown
  readonly kind: string;
}

export function frameName(tree: FlameTree, node: number): FrameName {
  const [name, where, kind] = (tree.names[tree.name[node]!] ?? '').split('\t');
  return { function: node === 0 ? 'all' : (name ?? ''), where: where ?? '', kind: kind ?? '' };
}

export function frameLabel(tree: FlameTree, node: number): string {
  const name = frameName(tree, node);
  return name.where === '' ? name.function : `${name.function} (${name.where})`;
}

/** Returns whether the tree shows a change between two moments or files. */
export function differs(tree: FlameTree): boolean {
  return tree.before.length > 0;
}

/** Returns the bytes of a node, or how they differ. */
export function amountWords(tree: FlameTree, node: number, isGrowth: boolean): string {
  const bytes = tree.bytes[node]!;
  if (differs(tree)) return formatDelta(bytes - tree.before[node]!);
  return isGrowth ? formatDelta(bytes) : formatBytes(bytes);
}

/** Returns a frame and its callers as text to be copied. */
export function frameText(tree: FlameTree, node: number, isGrowth: boolean): string {
  const callers: string[] = [];
  for (let at = node === 0 ? 0 : tree.parent[node]!; at !== 0; at = tree.parent[at]!) callers.push(`  < ${frameLabel(tree, at)}`);
  return [describe(tree, node, isGrowth), ...callers].join('\n');
}

function categoryWords({ bytes, category, category_bytes: most }: FlameTree, node: number, categories: readonly string[] | null): string {
  const name = categories?.[category[node]!];
  if (name === undefined || !(most[node]! > 0)) return '';
  return most[node] === bytes[node] ? `, ${words(name)}` : `, ${formatPercent(most[node]!, bytes[node]!)} of it ${words(name)}`;
}

/**
 * Describes a node in one line: 'Attention.forward (model.py:88): 12 GiB, 41 % of 29.3 GiB, 3
 * blocks'. With the names of the categories, also which one has most of it.
 */
export function describe(tree: FlameTree, node: number, isGrowth: boolean, categories: readonly string[] | null = null): string {
  const bytes = tree.bytes[node]!;
  const label = frameLabel(tree, node);
  if (differs(tree)) {
    const before = tree.before[node]!;
    return `${label}: ${amountWords(tree, node, isGrowth)}, from ${formatBytes(before)} to ${formatBytes(bytes)}`;
  }
  if (isGrowth) return `${label}: ${amountWords(tree, node, isGrowth)} of ${formatDelta(tree.total)}`;
  const share = node === 0 ? '' : `, ${formatPercent(bytes, tree.total)} of ${formatBytes(tree.total)}`;
  return `${label}: ${formatBytes(bytes)}${share}, ${plural(tree.blocks[node]!, 'block')}${categoryWords(tree, node, categories)}`;
}

/**
 * Returns a test for names: plain text anywhere in either case, or /a regular expression/. Returns
 * null for an invalid expression.
 */
export function matcher(search: string): ((name: string) => boolean) | null {
  const pattern = /^\/(.+)\/$/.exec(search);
  if (pattern !== null) {
    try {
      const expression = new RegExp(pattern[1]!, 'i');
      return (name) => expression.test(name);
    } catch {
      return null;
    }
  }
  const words = search.toLowerCase();
  return (name) => name.toLowerCase().includes(words);
}

export interface Matches {
  readonly nodes: Uint8Array; // 1: its name matches
  readonly count: number;
  readonly bytes: number; // of the matching nodes without a matching ancestor
}

export function findMatches(tree: FlameTree, search: string): Matches | null {
  const test = search === '' ? null : matcher(search);
  if (test === null) return null;
  const named = tree.names.map((name) => test(name));
  const nodes = new Uint8Array(tree.parent.length);
  const covered = new Uint8Array(tree.parent.length);
  let count = 0;
  let bytes = 0;
  for (let node = 1; node < nodes.length; node++) {
    const above = covered[tree.parent[node]!]!;
    const matches = named[tree.name[node]!] === true;
    covered[node] = above === 1 || matches ? 1 : 0;
    if (!matches) continue;
    nodes[node] = 1;
    count++;
    if (above === 0) bytes += tree.bytes[node]!;
  }
  return { nodes, count, bytes };
}

export function matchWords(tree: FlameTree, search: string, matches: Matches | null): string {
  if (search === '') return '';
  if (matches === null) return 'Invalid regular expression.';
  if (matches.count === 0) return 'No frame matches.';
  return `${plural(matches.count, 'frame matches', 'frames match')}: ${formatBytes(matches.bytes)}, ${formatPercent(matches.bytes, tree.total)}`;
}
