// What the list of events says of an entry.

import { formatBytes } from '../../base/format_bytes';
import { EVENT_KINDS, NO_ROW, type EventKind, type EventRow } from '../../data/protocol';
import type { Selection } from '../../state/state';

const WORDS: Readonly<Record<EventKind, string>> = {
  alloc: 'alloc',
  free: 'free',
  free_requested: 'free requested',
  free_completed: 'free completed',
  free_refused: 'free refused by the driver',
  segment_alloc: 'segment alloc',
  segment_free: 'segment free',
  map: 'map',
  unmap: 'unmap',
  failed: 'failed alloc',
  action: 'allocator action',
  recorded_action: 'allocator action',
  mark: 'mark',
  snapshot: 'snapshot',
};

/** 'free requested 12.0 MiB', 'alloc 2.00 MiB of driver'. `heap`: of the lane that is shown. */
export function eventWords({ kind, bytes, heap: of }: EventRow, heap: string): string {
  const whose = of === '' || of === heap || kind === 'segment_alloc' || kind === 'segment_free' || kind === 'map' || kind === 'unmap' ? '' : ` of ${of}`;
  return `${WORDS[kind]}${bytes === null ? '' : ` ${formatBytes(bytes)}`}${whose}`;
}

/** What is selected with an entry: its block, or the moment. */
export function selectionOf({ row, event }: EventRow): Selection {
  return row === NO_ROW ? { kind: 'instant', event } : { kind: 'block', row };
}

export interface KindGroup {
  readonly title: string;
  readonly kinds: number; // EventsQuery
}

function group(title: string, ...kinds: readonly EventKind[]): KindGroup {
  return { title, kinds: kinds.reduce((bits, kind) => bits | bitOf(kind), 0) };
}

export const KIND_GROUPS: readonly KindGroup[] = [
  group('Allocs', 'alloc'),
  group('Frees', 'free', 'free_requested', 'free_refused'),
  group('Frees completed', 'free_completed'),
  group('Segments, maps', 'segment_alloc', 'segment_free', 'map', 'unmap'),
  group('Failures, retries', 'failed', 'action', 'recorded_action'),
  group('Marks, snapshots', 'mark', 'snapshot'),
];

export function bitOf(kind: EventKind): number {
  return 2 ** EVENT_KINDS.indexOf(kind);
}

/** Returns how many of all entries are of these kinds. */
export function countOf(kinds: number, counts: readonly number[]): number {
  return counts.reduce((sum, count, i) => sum + ((kinds >> i) % 2 === 1 ? count : 0), 0);
}
