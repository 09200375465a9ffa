// The colours of call sites. Those that hold most at the peak (LaneMeta.sites) have one each, all
// different. Every other site shares a paler one of the same hues.

import { hueOfIndex, mix, SHADES, SITES } from './palette';
import type { Theme } from './theme';

const PALER = 0.45; // share of the background

export class SiteColors {
  /** The colours, by the index of a site. */
  readonly colors: readonly string[];
  private readonly index = new Map<number, number>();
  private readonly others: number; // index of their first colour

  /** `largest`: at most SITES keys, the largest first; empty: all sites share the full colours. */
  constructor(largest: readonly number[], theme: Theme) {
    const shades = Array.from({ length: SITES }, (_, i) => SHADES[theme.scheme][hueOfIndex(i)]);
    this.colors = [...shades, ...shades.map((shade) => mix(shade, theme.bg, PALER))];
    this.others = largest.length === 0 ? 0 : SITES;
    // A site has the colour of its key if no larger site has it, so that most sites have the same
    // colour in other recordings.
    const used = new Set<number>();
    for (const key of largest.slice(0, SITES)) {
      let index = hashOfKey(key);
      while (used.has(index)) index = (index + 1) % SITES;
      used.add(index);
      this.index.set(key, index);
    }
  }

  indexOf(key: number): number {
    return this.index.get(key) ?? this.others + hashOfKey(key);
  }
  colorOf(key: number): string {
    return this.colors[this.indexOf(key)]!;
  }
}

function hashOfKey(key: number): number {
  // Keys may be close to each other; their colours should not be.
  return (Math.imul(key ^ (key >>> 16), 0x45d9f3b) >>> 8) % SITES;
}
