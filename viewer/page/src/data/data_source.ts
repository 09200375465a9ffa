// The source of answers to the page's questions. Any call may fail with a DataError whose message
// is meant for people. A question that is aborted rejects with an AbortError.

import type * as p from './protocol';

export class DataError extends Error {}

/** Returns what a caught value says, for display. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export interface DataSource {
  meta(signal?: AbortSignal): Promise<p.Meta>;
  /**
   * Calls `onProgress` until every file is ready or failed, and `onLost` when nothing is received any
   * more; `onProgress` may be called again after that. Returns the function that stops it.
   */
  watchProgress(onProgress: (progress: p.Progress) => void, onLost?: () => void): () => void;
  curve(window: p.Window, signal?: AbortSignal): Promise<p.CurveTile>;
  passing(query: p.PassingQuery, signal?: AbortSignal): Promise<p.PassingCurve>;
  blocks(query: p.BlockQuery, signal?: AbortSignal): Promise<p.BlockTile>;
  block(file: number, row: number, signal?: AbortSignal): Promise<p.BlockDetails>;
  stacks(file: number, ids: readonly number[], signal?: AbortSignal): Promise<readonly p.StackInfo[]>;
  source(file: number, path: string, line: number, signal?: AbortSignal): Promise<p.SourceText>;
  flame(query: p.FlameQuery, signal?: AbortSignal): Promise<p.FlameTree>;
  table(query: p.TableQuery, signal?: AbortSignal): Promise<p.Table>;
  range(query: p.RangeQuery, signal?: AbortSignal): Promise<p.RangeTable>;
  segments(file: number, lane: number, event: number, signal?: AbortSignal): Promise<p.Segments>;
  events(query: p.EventsQuery, signal?: AbortSignal): Promise<p.EventPage>;
  answer(file: number, name: p.AnswerName, signal?: AbortSignal): Promise<p.Answer>;
  compare(file: number, other: number, signal?: AbortSignal): Promise<p.Compare>;
  find(scope: p.Scope, after: number, limit: number, signal?: AbortSignal): Promise<p.Found>;
  predicted(query: p.PredictedQuery, signal?: AbortSignal): Promise<p.PredictedCurve>;
  ranks(signal?: AbortSignal): Promise<p.Ranks>;
  /** Not in a standalone file. Loads a recording whose state is 'waiting'. */
  load?(file: number): Promise<void>;
  /** For live recordings only: all following questions refer to the windows in `meta`. */
  useWindows?(meta: p.Meta): void;
  /** Returns the row in window `to` of a block of window `from`. */
  moved?(file: number, from: number, to: number, row: number): Promise<number>;
}

/**
 * Reports the progress of data that are complete as soon as they can be read. Returns the function
 * that stops it.
 */
export function watchMeta(meta: Promise<p.Meta>, onProgress: (progress: p.Progress) => void): () => void {
  let stopped = false;
  meta.then(
    ({ files }) => {
      const ready = files.map(({ file }) => ({ file, state: 'ready' as const, what: '', fraction: 1, error: '' }));
      if (!stopped) onProgress({ files: ready });
    },
    (error: unknown) => {
      const text = messageOf(error);
      if (!stopped) onProgress({ files: [{ file: 0, state: 'failed', what: '', fraction: 1, error: text }] });
    },
  );
  return () => (stopped = true);
}
