// Playback: moves the cursor automatically, as fast as states arrive. The speed is proportional to
// the range that the timeline shows, so that playing millions of events and playing one step take
// the same time.

import { useEffect, useRef, useState } from 'preact/hooks';

export const WHOLE_MS = 20_000; // for all events of the range

export interface Track {
  readonly from: number; // events
  readonly to: number;
}

/** Returns the event after `passed` ms: at least the next one, at most the last. */
export function playedTo(event: number, passed: number, { from, to }: Track): number {
  return Math.min(to, event + Math.max(1, Math.round(((to - from) * passed) / WHOLE_MS)));
}

/**
 * Returns where playing begins: at `event`, or at the beginning if `event` is at the end or outside
 * of the range.
 */
export function playedFrom(event: number, { from, to }: Track): number {
  return event >= from && event < to ? event : from;
}

export interface Playback {
  readonly isPlaying: boolean;
  readonly toggle: () => void;
}

/**
 * Plays when toggled. `isBusy` means that the last requested state has not arrived yet; playing
 * waits for it.
 */
export function usePlayback(event: number, track: Track, isBusy: boolean, go: (event: number) => void): Playback {
  const [isPlaying, setPlaying] = useState(false);
  const at = useRef(0); // time of the last move
  useEffect(() => {
    if (!isPlaying || isBusy) return undefined;
    if (event >= track.to) {
      setPlaying(false);
      return undefined;
    }
    const frame = requestAnimationFrame((now) => {
      const passed = Math.max(0, now - at.current);
      at.current = now;
      go(playedTo(event, passed, track));
    });
    return () => cancelAnimationFrame(frame);
  }, [isPlaying, isBusy, event, track.from, track.to]);
  const toggle = (): void => {
    at.current = performance.now();
    if (!isPlaying) go(playedFrom(event, track));
    setPlaying(!isPlaying);
  };
  return { isPlaying, toggle };
}
