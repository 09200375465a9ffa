import { describe, expect, it } from 'vitest';
import type { FlameTree } from '../../data/protocol';
import { ancestors, hit, layOut, MERGED, nodeOfPath, weigh, type FlameLayout } from './flame_layout';
import { forEachSeed, seedsUpTo } from '../../testing/seeds';

/** Nodes as [parent, name, bytes, before?]. */
function treeOf(nodes: readonly (readonly [number, string, number, number?])[]): FlameTree {
  const names = [...new Set(nodes.map((n) => n[1]))];
  const differs = nodes.some((n) => n[3] !== undefined);
  return {
    parent: Uint32Array.from(nodes, (n) => n[0]),
    bytes: Float64Array.from(nodes, (n) => n[2]),
    blocks: new Float64Array(nodes.length),
    before: differs ? Float64Array.from(nodes, (n) => n[3] ?? 0) : new Float64Array(0),
    category: new Uint8Array(0),
    category_bytes: new Float64Array(0),
    name: Uint32Array.from(nodes, (n) => names.indexOf(n[1])),
    names,
    total: nodes[0]![2],
  };
}

function rows(layout: FlameLayout): [number, number, number][][] {
  return layout.rowBegin.slice(0, -1).map((begin, r) => {
    const row: [number, number, number][] = [];
    for (let i = begin; i < layout.rowBegin[r + 1]!; i++) {
      row.push([layout.node[i]!, layout.left[i]!, layout.right[i]!]);
    }
    return row;
  });
}

/**
 * Returns a tree of `count` nodes from a seed. The bytes of a parent are at least those of its
 * children.
 */
function randomTree(count: number, seed: number): FlameTree {
  let state = seed;
  const random = (): number => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const parent = Array.from({ length: count }, (_, i) => (i === 0 ? 0 : Math.floor(random() * i)));
  const bytes = Array.from({ length: count }, () => Math.floor(random() ** 8 * 1e9));
  for (let i = count - 1; i > 0; i--) bytes[parent[i]!]! += bytes[i]!;
  return treeOf(parent.map((p, i) => [p, `f${i % 97}`, bytes[i]!]));
}

const SMALL = treeOf([
  [0, 'root', 128],
  [0, 'a', 32],
  [0, 'b', 96],
  [2, 'c', 48],
]);

describe('layOut', () => {
  it('puts the widest child first and leaves what a frame holds itself at its right', () => {
    expect(rows(layOut(weigh(SMALL), 0, 0.001))).toEqual([
      [[0, 0, 1]],
      [
        [2, 0, 0.75],
        [1, 0.75, 1],
      ],
      [[3, 0, 0.375]],
    ]);
  });

  it('gives the focused frame and its ancestors the whole width', () => {
    expect(rows(layOut(weigh(SMALL), 2, 0.001))).toEqual([[[0, 0, 1]], [[2, 0, 1]], [[3, 0, 0.5]]]);
  });

  it('merges narrow frames into one rectangle with nothing below it', () => {
    const tree = treeOf([
      [0, 'root', 1000],
      [0, 'wide', 990],
      ...Array.from({ length: 10 }, (_, i) => [0, `n${i}`, 1] as const),
      [2, 'below', 1],
    ]);
    const layout = layOut(weigh(tree), 0, 0.002);
    expect(rows(layout)[1]).toEqual([
      [1, 0, 0.99],
      [MERGED, 0.99, 1],
    ]);
    expect(layout.merged[2]).toBe(10);
    expect(rows(layout)).toHaveLength(2);
  });

  it('shows a freed frame as wide as it was', () => {
    const tree = treeOf([
      [0, 'root', 10, 100],
      [0, 'gone', 0, 90],
      [0, 'kept', 10, 10],
    ]);
    expect(rows(layOut(weigh(tree), 0, 0.001))[1]).toEqual([
      [1, 0, 0.9],
      [2, 0.9, 1],
    ]);
  });

  it('widens a frame whose children grew and shrank by the same amount', () => {
    const tree = treeOf([
      [0, 'root', 0],
      [0, 'moved', 0],
      [1, 'grew', 50],
      [1, 'shrank', -50],
    ]);
    const layout = rows(layOut(weigh(tree), 0, 0.001));
    expect(layout[2]).toEqual([
      [2, 0, 0.5],
      [3, 0.5, 1],
    ]);
  });

  it('lays out nothing below a root without bytes', () => {
    expect(rows(layOut(weigh(treeOf([[0, 'root', 0]])), 0, 0.001))).toEqual([[[0, 0, 1]]]);
  });

  it('keeps children inside their parents, without overlap and few in each row', () => {
    forEachSeed(seedsUpTo(3), (seed) => {
      const tree = randomTree(20_000, seed);
      const layout = layOut(weigh(tree), 0, 1 / 500);
      const place = new Map<number, readonly [number, number]>([[0, [0, 1]]]);
      for (const row of rows(layout)) {
        let last = 0;
        expect(row.length).toBeLessThanOrEqual(1000);
        for (const [node, left, right] of row) {
          expect(left).toBeGreaterThanOrEqual(last - 1e-12);
          expect(right).toBeGreaterThan(left);
          last = right;
          if (node === MERGED) continue;
          const [outerLeft, outerRight] = place.get(tree.parent[node]!)!;
          expect(left).toBeGreaterThanOrEqual(outerLeft);
          expect(right).toBeLessThanOrEqual(outerRight);
          place.set(node, [left, right]);
        }
      }
    });
  });
});

describe('hit', () => {
  it('finds what a linear search over all rectangles finds', () => {
    forEachSeed(seedsUpTo(2), (seed) => {
      const layout = layOut(weigh(randomTree(3000, seed)), 0, 1 / 300);
      for (let row = 0; row < layout.rowBegin.length; row++) {
        for (let x = 0; x < 1; x += 0.0137) {
          let slow = -1;
          for (let i = layout.rowBegin[row]!; i < (layout.rowBegin[row + 1] ?? 0); i++) {
            if (layout.left[i]! <= x && x < layout.right[i]!) slow = i;
          }
          expect(hit(layout, x, row)).toBe(slow);
        }
      }
    });
  });
});

describe('paths', () => {
  it('identify the same frame in another answer', () => {
    const other = weigh(
      treeOf([
        [0, 'root', 9],
        [0, 'new', 4],
        [0, 'b', 3],
        [2, 'c', 2],
      ]),
    );
    expect(nodeOfPath(other, weigh(SMALL).path[3]!)).toBe(3);
    expect(nodeOfPath(other, weigh(SMALL).path[1]!)).toBe(0);
  });

  it('start at the root', () => {
    expect(ancestors(SMALL, 3)).toEqual([0, 2, 3]);
    expect(ancestors(SMALL, 0)).toEqual([0]);
  });
});
