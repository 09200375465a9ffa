// The colours of a tile's items, and the legend that explains them. Items that do not match the
// filter are pale.

import { formatBytes } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { words } from '../../base/words';
import { NO_ROW, type BlockTile, type FileMeta, type Filter, type StackInfo } from '../../data/protocol';
import { siteLabelOf } from '../../data/stack_cache';
import type { Quads } from '../../render/quads';
import { hueOfCategory, hueOfDtype, hueOfIndex, hueOfRole, mix, type Hue, SEQUENTIAL, SHADES, type Scheme } from '../../render/palette';
import type { SiteColors } from '../../render/site_colors';
import type { Theme } from '../../render/theme';
import type { ColorBy } from '../../state/state';
import { filterOfDtype, filterOfRole } from '../ranges/row_filter';
import type { LaidOut } from './stacked_layout';

export const COLORINGS: readonly (readonly [ColorBy, string])[] = [
  ['category', 'category'], ['role', 'why alive'], ['dtype', 'tensor type'], ['stack', 'call site'], ['size', 'size'], ['age', 'time held'], ['stream', 'stream'],
  ['thread', 'thread'],
];

/**
 * Returns what a recording lacks for these colours, in words; '' if it lacks nothing, or is not
 * known well enough yet.
 */
export function lackOf(by: ColorBy, { categories, roles, dtypes }: FileMeta): string {
  if (categories.length === 0) return '';
  if (by === 'role' && roles.length === 0) return 'not recorded';
  return by === 'dtype' && dtypes.length <= 1 ? 'not recorded' : '';
}

export interface LegendEntry {
  readonly name: string;
  readonly color: string;
  readonly bytes: number; // maximum shown
  readonly change: Partial<Filter> | null; // the filter that a click sets
}

export interface Coloring {
  readonly colors: readonly string[];
  readonly ofItem: Uint16Array; // items, then one entry for the rest of each category
  readonly legend: readonly LegendEntry[];
}

interface Kinds {
  readonly names: readonly string[];
  readonly colors: readonly string[];
  readonly of: (item: number) => number;
  readonly change: (kind: number) => Partial<Filter> | null;
}

const FADED = 0.78; // the share of the background

/** A null `passes` means that there is no filter. */
export function colorItems(tile: BlockTile, { items, quads }: LaidOut, by: ColorBy, file: FileMeta, sites: SiteColors, theme: Theme, passes: Uint8Array | null): Coloring {
  const categories = categoriesOf(file);
  const kinds = kindsOf(tile, by, file, sites, theme.scheme);
  const pale = kinds.colors.length;
  const rest = pale * 2;
  // Sums have the colours of their blocks: what is drawn as a sum depends on the plot's height.
  const restColors = categories.map((name) => (by === 'category' ? mix(SHADES[theme.scheme][hueOfCategory(name)], theme.bg, passes === null ? 0 : FADED) : theme.rest));
  const ofItem = new Uint16Array(items);
  const bytes = new Float64Array(kinds.names.length);
  for (let i = 0; i < tile.row.length; ++i) {
    if (tile.row[i] === NO_ROW) {
      ofItem[i] = rest + knownCode(tile.category[i]!, categories);
      continue;
    }
    const kind = kinds.of(i);
    ofItem[i] = passes === null || passes[i] === 1 ? kind : pale + kind;
    bytes[kind]! += tile.size[i]!;
  }
  for (let i = tile.row.length; i < items; ++i) ofItem[i] = rest + knownCode(i - tile.row.length, categories);
  if (by === 'category') addRest(bytes, tile.row.length, quads);
  const legend = kinds.names
    .map((name, kind) => ({ name, color: kinds.colors[kind]!, bytes: bytes[kind]!, change: kinds.change(kind) }))
    .filter((entry) => entry.bytes > 0 && entry.name !== '');
  const faded = kinds.colors.map((color) => mix(color, theme.bg, FADED));
  return { colors: [...kinds.colors, ...faded, ...restColors], ofItem, legend: by === 'size' || by === 'age' ? legend : legend.sort((a, b) => b.bytes - a.bytes) };
}

// While a recording is loading, a tile may come before the names of its categories. These are
// unknown then, like code 0.
function categoriesOf(file: FileMeta): readonly string[] {
  return file.categories.length > 0 ? file.categories : ['unknown'];
}

function knownCode(code: number, names: readonly string[]): number {
  return code < names.length ? code : 0;
}

// A window may contain only sums. Their colours are category colours too, and the legend must name
// them.
function addRest(bytes: Float64Array, rows: number, quads: Quads): void {
  const most = new Float64Array(bytes.length);
  for (let i = 0; i < quads.count; ++i) {
    const category = quads.item[i]! - rows;
    if (category >= 0) most[category] = Math.max(most[category]!, quads.y1[i]! - quads.y0[i]!);
  }
  for (const [category, tallest] of most.entries()) bytes[category]! += tallest;
}

function kindsOf(tile: BlockTile, by: ColorBy, file: FileMeta, sites: SiteColors, scheme: Scheme): Kinds {
  const shades = SHADES[scheme];
  switch (by) {
    case 'category': {
      const names = categoriesOf(file);
      return {
        names: names.map(words), colors: names.map((name) => shades[hueOfCategory(name)]), of: (i) => knownCode(tile.category[i]!, names),
        change: (kind) => ({ category: names[kind]! }),
      };
    }
    case 'role':
      return oneHueEach(file.roles, (i) => tile.role[i]!, hueOfRole, filterOfRole, 'why memory is alive was not recorded', scheme);
    case 'dtype':
      return oneHueEach(file.dtypes, (i) => tile.dtype[i]!, hueOfDtype, filterOfDtype, 'types of tensors were not recorded', scheme);
    case 'stream':
      return named(file.streams, (i) => tile.stream[i]!, (stream) => ({ stream }), 'stream ', scheme);
    case 'thread':
      return named(file.threads, (i) => tile.thread[i]!, (thread) => ({ thread }), '', scheme);
    case 'stack':
      // There are too many sites to name here: siteLegend() names the largest, the table all.
      return { names: sites.colors.map(() => ''), colors: sites.colors, of: (i) => sites.indexOf(tile.key[i]!), change: () => null };
    case 'size':
      return bySize(tile, SEQUENTIAL[scheme]);
    case 'age':
      return byAge(tile, scheme);
  }
}

const LEGEND_SITES = 12; // the first twelve have different colours (site_colors.ts)

export interface Site {
  readonly key: number;
  readonly bytes: number; // shown
  /** One of its stacks with each forward stack, 0 outside of backward passes; the largest first. */
  readonly stacks: readonly (readonly [stack: number, forward: number])[];
}

/** Returns the call sites with the most bytes in individually drawn blocks, the largest first. */
export function topSites(tile: BlockTile): Site[] {
  const sites = new Map<number, Map<number, { readonly stack: number; bytes: number }>>(); // by key and forward stack
  for (let i = 0; i < tile.row.length; ++i) {
    const key = tile.key[i]!;
    if (tile.row[i] === NO_ROW || key === 0) continue; // 0: no line of the program is known
    const ofSite = sites.get(key) ?? new Map<number, { readonly stack: number; bytes: number }>();
    sites.set(key, ofSite);
    const forward = tile.forward_stack[i]!;
    const shown = ofSite.get(forward) ?? { stack: tile.stack[i]!, bytes: 0 };
    shown.bytes += tile.size[i]!;
    ofSite.set(forward, shown);
  }
  return [...sites]
    .map(([key, ofSite]) => {
      const shown = [...ofSite].sort(([, a], [, b]) => b.bytes - a.bytes);
      return { key, bytes: shown.reduce((sum, [, { bytes }]) => sum + bytes, 0), stacks: shown.map(([forward, { stack }]) => [stack, forward] as const) };
    })
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, LEGEND_SITES);
}

/** Names the sites whose stacks are known. */
export function siteLegend(sites: readonly Site[], colors: SiteColors, stackOf: (stack: number) => StackInfo | null): LegendEntry[] {
  return sites
    .map(({ key, stacks, bytes }) => ({ name: siteLabelOf(stackOf, stacks) ?? '', color: colors.colorOf(key), bytes, change: { key } }))
    .filter((entry) => entry.name !== '');
}

function named(names: readonly string[], of: (item: number) => number, change: (name: string) => Partial<Filter>, prefix: string, scheme: Scheme): Kinds {
  return {
    names: [...names.map((name) => prefix + name), 'other'], colors: [...names.map((_, i) => SHADES[scheme][hueOfIndex(i)]), SHADES[scheme].grey],
    of: (i) => Math.min(names.length, of(i)), change: (kind) => (kind < names.length ? change(names[kind]!) : null),
  };
}

/** A recording with at most one name has none but 'unknown': `lack` says so. */
function oneHueEach(
  names: readonly string[], of: (item: number) => number, hueOf: (name: string) => Hue, change: (name: string) => Partial<Filter> | null, lack: string, scheme: Scheme,
): Kinds {
  if (names.length <= 1) return { names: [lack], colors: [SHADES[scheme].grey], of: () => 0, change: () => null };
  return { names, colors: names.map((name) => SHADES[scheme][hueOf(name)]), of: (i) => knownCode(of(i), names), change: (kind) => change(names[kind]!) };
}

const SIZE_LIMITS = [64 * 1024, 1024 ** 2, 4 * 1024 ** 2, 16 * 1024 ** 2, 64 * 1024 ** 2, 256 * 1024 ** 2];

function bySize(tile: BlockTile, colors: readonly string[]): Kinds {
  return {
    names: colors.map((_, kind) => rangeName(kind, SIZE_LIMITS, formatBytes)), colors, of: (i) => classOf(tile.size[i]!, SIZE_LIMITS),
    change: (kind) => ({ min_size: kind === 0 ? null : SIZE_LIMITS[kind - 1]!, max_size: kind === SIZE_LIMITS.length ? null : SIZE_LIMITS[kind]! - 1 }),
  };
}

// The time that a block is held, on the axis that is shown.
const AGE_LIMITS = {
  time: { limits: [1e6, 1e7, 1e8, 1e9, 1e10, 1e11], write: formatDuration },
  event: { limits: [1e1, 1e2, 1e3, 1e4, 1e5, 1e6], write: (events: number): string => `${events.toLocaleString('en')} events` },
  step: { limits: [0.01, 0.1, 0.5, 1, 4, 16], write: (steps: number): string => (steps === 1 ? '1 step' : `${steps} steps`) },
};

// What is never freed is a class of its own: how long it is held depends on the recording's length.
function byAge(tile: BlockTile, scheme: Scheme): Kinds {
  const { limits, write } = AGE_LIMITS[tile.query.axis];
  const colors = SEQUENTIAL[scheme];
  const held = colors.map((_, kind) => `held ${rangeName(kind, limits, write)}`);
  const of = (i: number): number => (tile.end[i] === Infinity ? colors.length : classOf(tile.end[i]! - tile.start[i]!, limits));
  return { names: [...held, 'never freed'], colors: [...colors, SHADES[scheme].pink], of, change: () => null };
}

function classOf(value: number, limits: readonly number[]): number {
  const kind = limits.findIndex((limit) => value < limit);
  return kind < 0 ? limits.length : kind;
}

function rangeName(kind: number, limits: readonly number[], write: (value: number) => string): string {
  if (kind === 0) return `below ${write(limits[0]!)}`;
  return kind === limits.length ? `from ${write(limits[kind - 1]!)}` : `${write(limits[kind - 1]!)} to ${write(limits[kind]!)}`;
}
