// Playback: the cursor goes along by itself, as fast as states come. Its speed is of the window that the
// timeline shows, so that a recording of millions of events and a step of it take as long.

import { useEffect, useRef, useState } from 'preact/hooks';

export const WHOLE_MS = 20_000; // for all events of the window

export interface Track {
  readonly from: number; // events
  readonly to: number;
}

/** The event after `passed` ms; at least the next one, at most the last. */
export function playedTo(event: number, passed: number, { from, to }: Track): number {
  return Math.min(to, event + Math.max(1, Math.round(((to - from) * passed) / WHOLE_MS)));
}

/** Where playing begins: here, or from the beginning where here is the end or outside. */
export function playedFrom(event: number, { from, to }: Track): number {
  return event >= from && event < to ? event : from;
}

export interface Playback {
  readonly isPlaying: boolean;
  readonly toggle: () => void;
}

/** `isBusy`: the last state that was asked for is not there yet; playing waits for it. */
export function usePlayback(event: number, track: Track, isBusy: boolean, go: (event: number) => void): Playback {
  const [isPlaying, setPlaying] = useState(false);
  const at = useRef(0); // time of the last event that was gone to
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
