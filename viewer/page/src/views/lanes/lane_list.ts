// Which lanes are shown, and in which order. The defaults are the main lane of each recording, or
// all lanes if there is only one recording, in the order of the recordings.

import type { FileMeta, LaneMeta } from '../../data/protocol';
import type { LanesOptions } from '../../state/state';

export interface LaneEntry {
  readonly id: string;
  readonly file: FileMeta;
  readonly lane: LaneMeta | null; // null: the recording has no lane, or is not loaded
}

export interface ArrangedLanes {
  readonly pinned: readonly LaneEntry[];
  readonly others: readonly LaneEntry[];
}

export function idOf(file: number, lane: number | null): string {
  return lane === null ? String(file) : `${file}.${lane}`;
}

export function allLanes(files: readonly FileMeta[]): LaneEntry[] {
  return files.flatMap((file) => {
    const lanes = file.lanes.length === 0 ? [null] : file.lanes;
    return lanes.map((lane) => ({ id: idOf(file.file, lane?.lane ?? null), file, lane }));
  });
}

/** Returns the ids of the lanes that are shown. */
export function shownLanes(files: readonly FileMeta[], { toggled }: LanesOptions): ReadonlySet<string> {
  const isUsual = ({ file, lane }: LaneEntry): boolean => files.length === 1 || lane === null || lane === file.lanes[0];
  return new Set(allLanes(files).filter((entry) => isUsual(entry) !== toggled.includes(entry.id)).map(({ id }) => id));
}

export function arrangedLanes(files: readonly FileMeta[], options: LanesOptions): ArrangedLanes {
  const shown = shownLanes(files, options);
  const placeOf = ({ id }: LaneEntry): number => (options.order.includes(id) ? options.order.indexOf(id) : options.order.length);
  const lanes = allLanes(files).filter(({ id }) => shown.has(id)).sort((a, b) => placeOf(a) - placeOf(b));
  const isPinned = ({ id }: LaneEntry): boolean => options.pinned.includes(id);
  return { pinned: lanes.filter(isPinned), others: lanes.filter((entry) => !isPinned(entry)) };
}

/**
 * Returns the order after a lane was moved by `by` places: a pinned one among the pinned ones, any
 * other among the others.
 */
export function movedLane({ pinned, others }: ArrangedLanes, id: string, by: number): string[] {
  return [pinned, others].flatMap((part) => {
    const ids = part.map((entry) => entry.id);
    const from = ids.indexOf(id);
    if (from < 0) return ids;
    ids.splice(from, 1);
    ids.splice(Math.max(0, from + by), 0, id);
    return ids;
  });
}

/** Adds a name to a list, or removes it. */
export function toggledName(names: readonly string[], id: string): string[] {
  return names.includes(id) ? names.filter((name) => name !== id) : [...names, id];
}

/** Returns `toggled` after these lanes were shown or hidden. */
export function withShown(files: readonly FileMeta[], options: LanesOptions, ids: readonly string[], isShown: boolean): string[] {
  const shown = shownLanes(files, options);
  return ids.filter((id) => shown.has(id) !== isShown).reduce<string[]>(toggledName, [...options.toggled]);
}

/** Returns the name of a lane's heap without its device: 'PyTorch blocks'. */
export function heapTitle({ label }: LaneMeta): string {
  return label.split(' · ').at(-1)!;
}
