// The other side of a difference between two files. Its direction is that of the comparison: from
// the file shown, the base, to the other one. The moments are those of the cursors, otherwise each
// file's own peak.

import { formatCount } from '../../base/format_bytes';
import type { FileMeta, FlameQuery, FlameTree } from '../../data/protocol';
import { fileOf, laneOf } from '../../state/scope';
import type { State } from '../../state/state';

/** Returns the chosen other file, otherwise the first one, or null if there is none. */
export function otherFile(state: State): FileMeta | null {
  const others = (state.meta?.files ?? []).filter((file) => file.file !== state.file);
  return others.find((file) => file.file === state.other) ?? others[0] ?? null;
}

/** Returns the moment in the lane most similar to the one shown, or null if there is none. */
export function otherMoment(state: State): FlameQuery['other'] {
  const other = otherFile(state);
  const lane = laneOf(state);
  if (other === null || lane === null) return null;
  const like =
    other.lanes.find((each) => each.device === lane.device && each.heap === lane.heap) ??
    other.lanes.find((each) => each.heap === lane.heap);
  return like === undefined ? null : { file: other.file, lane: like.lane, to: otherCursor(state, other) ?? like.peak_event };
}

// It is used only together with the cursor: without a cursor each file is shown at its own peak. It
// is not used in a live recording, whose events are soon renumbered.
function otherCursor(state: State, other: FileMeta): number | null {
  if (state.cursor === null || state.otherCursor === null || other.live !== undefined) return null;
  return Math.min(state.otherCursor, other.events);
}

/** Describes what is compared. */
export function otherWords(state: State, moment: FlameQuery['other']): string {
  if (moment === null) return 'No other file has memory of this kind.';
  const other = otherFile(state);
  const isPeak = other === null || otherCursor(state, other) === null;
  const at = isPeak ? `at its own peak, event ${formatCount(moment.to)}` : `after its event ${formatCount(moment.to)}`;
  return `${other?.name ?? ''} ${at}, minus ${fileOf(state)?.name ?? ''}: orange is more, blue is less`;
}

/**
 * Swaps the sides of an answer. The answer has the file asked about first as the new side; here the
 * file shown is the base.
 */
export function fromShown(tree: FlameTree): FlameTree {
  return tree.before.length === 0 ? tree : { ...tree, bytes: tree.before, before: tree.bytes, total: tree.before[0]! };
}
