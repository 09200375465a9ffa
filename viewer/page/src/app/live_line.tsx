// The status line of a live recording: whether it is followed, what is held now, how old the
// picture is, and how it ended. Without a connection to the server, that is said instead.

import { formatBytes, formatCount } from '../base/format_bytes';
import { formatDuration } from '../base/format_time';
import { plural } from '../base/plural';
import type { FileMeta, LiveProgress } from '../data/protocol';
import { liveProgressOf } from '../state/live';
import { fileOf, laneOf } from '../state/scope';
import type { State } from '../state/state';

/** A picture older than this has its age shown. */
const OLD_NS = 2e9;

export function LiveLine({ state, onFollow }: { readonly state: State; readonly onFollow: () => void }) {
  const live = liveProgressOf(state);
  if (live === null || (state.lostAt !== null && live.state !== 'ended')) return null;
  const hasLane = laneOf(state) !== null;
  return (
    <p class={`progress live live-${live.state}`}>
      <span class="live-state" role="status">{stateWords(live, fileOf(state))}</span>
      {live.state !== 'ended' && <span class="live-now">{nowWords(live, state)}</span>}
      {live.state !== 'ended' && live.age_ns > OLD_NS && <span class="live-age">{`blocks are ${formatDuration(live.age_ns)} old`}</span>}
      {hasLane && (
        <button type="button" aria-pressed={state.following} title="E" onClick={onFollow}>
          {live.state === 'ended' ? 'Go to the end' : 'Follow'}
        </button>
      )}
      {windowWords(fileOf(state))}
    </p>
  );
}

export function LostLine({ state: { lostAt } }: { readonly state: State }) {
  if (lostAt === null) return null;
  return (
    <p class="progress failed" role="alert">
      {`No connection to gpumemtrace view since ${new Date(lostAt).toLocaleTimeString()}. What is shown is from before. This page connects again as soon as it can.`}
    </p>
  );
}

export function stateWords(live: LiveProgress, file: FileMeta | null): string {
  switch (live.state) {
    case 'following':
      return live.words === '' ? `Live: ${live.name}` : `Live: ${live.name}, ${live.words}`;
    case 'lost':
      return live.words;
    case 'ended':
      return `Ended at ${clockOf(file, live.now_ns)}: ${live.words}`;
  }
}

// What the shown lane holds now.
export function nowWords(live: LiveProgress, state: State): string {
  const lane = laneOf(state);
  const heap = lane === null ? undefined : live.heaps.find((each) => each.device === lane.device && each.heap === lane.heap);
  const rate = `${formatCount(Math.round(live.events_per_second))} events/s`;
  return heap === undefined ? rate : `${formatBytes(heap.live_bytes)} in ${plural(heap.live_blocks, 'block')} now, ${rate}`;
}

function windowWords(file: FileMeta | null): string {
  if (file?.live === undefined || file.live.begin_ns === 0) return '';
  return ` Shown from ${formatDuration(file.live.begin_ns)} on; the recording also has what was before.`;
}

/** Returns the time of day at which the recording was `ns` old. */
export function clockOf(file: FileMeta | null, ns: number): string {
  if (file === null) return formatDuration(ns);
  const unixMs = Number(BigInt(file.start_unix_ns) / 1_000_000n) + ns / 1e6;
  return new Date(unixMs).toLocaleTimeString();
}
