// A difference between two files, in the direction of the comparison: from the file that is shown, the base,
// to the other one. The moments are those of the cursors, else each file's own peak.

import { formatCount } from '../../base/format_bytes';
import type { FileMeta, FlameQuery, FlameTree } from '../../data/protocol';
import { fileOf, laneOf } from '../../state/scope';
import type { State } from '../../state/state';

/** The one that is chosen, else the first; null: there is no other. */
export function otherFile(state: State): FileMeta | null {
  const others = (state.meta?.files ?? []).filter((file) => file.file !== state.file);
  return others.find((file) => file.file === state.other) ?? others[0] ?? null;
}

/** In the lane that is most like the one shown; null: there is none. */
export function otherMoment(state: State): FlameQuery['other'] {
  const other = otherFile(state);
  const lane = laneOf(state);
  if (other === null || lane === null) return null;
  const like =
    other.lanes.find((each) => each.device === lane.device && each.heap === lane.heap) ??
    other.lanes.find((each) => each.heap === lane.heap);
  return like === undefined ? null : { file: other.file, lane: like.lane, to: otherCursor(state, other) ?? like.peak_event };
}

// It goes with the cursor: without one each file is looked at at its own peak. In a recording that goes on
// the same event soon has another number.
function otherCursor(state: State, other: FileMeta): number | null {
  if (state.cursor === null || state.otherCursor === null || other.live !== undefined) return null;
  return Math.min(state.otherCursor, other.events);
}

/** What is compared, in words. */
export function otherWords(state: State, moment: FlameQuery['other']): string {
  if (moment === null) return 'No other file has memory of this kind.';
  const other = otherFile(state);
  const isPeak = other === null || otherCursor(state, other) === null;
  const at = isPeak ? `at its own peak, event ${formatCount(moment.to)}` : `after its event ${formatCount(moment.to)}`;
  return `what ${other?.name ?? ''} holds ${at}, less what ${fileOf(state)?.name ?? ''} does: orange is more, blue is less`;
}

/** The answer has the file that is asked about first as what is new; the shown one is the base here. */
export function fromShown(tree: FlameTree): FlameTree {
  return tree.before.length === 0 ? tree : { ...tree, bytes: tree.before, before: tree.bytes, total: tree.before[0]! };
}
