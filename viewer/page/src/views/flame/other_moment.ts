// The moment of the other file that a moment of this one is compared with: the peak of the lane that
// is most like it.

import type { FlameQuery } from '../../data/protocol';
import { laneOf } from '../../state/scope';
import type { State } from '../../state/state';

export function otherMoment(state: State): FlameQuery['other'] {
  const files = state.meta?.files ?? [];
  const other = files.find((file) => (state.other === null ? file.file !== state.file : file.file === state.other));
  const lane = laneOf(state);
  if (other === undefined || other.file === state.file || lane === null) return null;
  const like =
    other.lanes.find((each) => each.device === lane.device && each.heap === lane.heap) ??
    other.lanes.find((each) => each.heap === lane.heap);
  return like === undefined ? null : { file: other.file, lane: like.lane, to: like.peak_event };
}
