// A DataSource whose answers come from a worker (embedded/worker.ts).

import { watchMeta, type DataSource } from './data_source';
import { failureOf, type Asked, type Question, type Reply } from './embedded/calls';
import type * as p from './protocol';

/** The part of Worker that is used here. */
export interface Port {
  onmessage: ((message: MessageEvent<Reply>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  postMessage(asked: Asked): void;
}

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class WorkerSource implements DataSource {
  private readonly waiting = new Map<number, Waiting>();
  private calls = 0;
  private known: Promise<p.Meta> | null = null;

  /** REQUIRES: the worker has reported that it is ready. */
  constructor(
    private readonly port: Port,
    parts: Map<string, readonly string[]>,
  ) {
    port.onmessage = ({ data }) => this.take(data);
    port.onerror = (event) => this.failAll(event.message);
    port.postMessage({ kind: 'parts', parts });
  }

  meta(): Promise<p.Meta> {
    return (this.known ??= this.ask<p.Meta>('meta', []));
  }
  watchProgress(onProgress: (progress: p.Progress) => void): () => void {
    return watchMeta(this.meta(), onProgress);
  }
  curve(window: p.Window, signal?: AbortSignal): Promise<p.CurveTile> {
    return this.ask('curve', [window], signal);
  }
  passing(query: p.PassingQuery, signal?: AbortSignal): Promise<p.PassingCurve> {
    return this.ask('passing', [query], signal);
  }
  predicted(query: p.PredictedQuery, signal?: AbortSignal): Promise<p.PredictedCurve> {
    return this.ask('predicted', [query], signal);
  }
  blocks(query: p.BlockQuery, signal?: AbortSignal): Promise<p.BlockTile> {
    return this.ask('blocks', [query], signal);
  }
  block(file: number, row: number, signal?: AbortSignal): Promise<p.BlockDetails> {
    return this.ask('block', [file, row], signal);
  }
  stacks(file: number, ids: readonly number[], signal?: AbortSignal): Promise<readonly p.StackInfo[]> {
    return this.ask('stacks', [file, ids], signal);
  }
  source(file: number, path: string, line: number, signal?: AbortSignal): Promise<p.SourceText> {
    return this.ask('source', [file, path, line], signal);
  }
  flame(query: p.FlameQuery, signal?: AbortSignal): Promise<p.FlameTree> {
    return this.ask('flame', [query], signal);
  }
  table(query: p.TableQuery, signal?: AbortSignal): Promise<p.Table> {
    return this.ask('table', [query], signal);
  }
  range(query: p.RangeQuery, signal?: AbortSignal): Promise<p.RangeTable> {
    return this.ask('range', [query], signal);
  }
  segments(file: number, lane: number, event: number, signal?: AbortSignal): Promise<p.Segments> {
    return this.ask('segments', [file, lane, event], signal);
  }
  events(query: p.EventsQuery, signal?: AbortSignal): Promise<p.EventPage> {
    return this.ask('events', [query], signal);
  }
  answer(file: number, name: p.AnswerName, signal?: AbortSignal): Promise<p.Answer> {
    return this.ask('answer', [file, name], signal);
  }
  compare(file: number, other: number, signal?: AbortSignal): Promise<p.Compare> {
    return this.ask('compare', [file, other], signal);
  }
  ranks(signal?: AbortSignal): Promise<p.Ranks> {
    return this.ask('ranks', [], signal);
  }
  find(scope: p.Scope, after: number, limit: number, signal?: AbortSignal): Promise<p.Found> {
    return this.ask('find', [scope, after, limit], signal);
  }

  private async ask<T>(name: Question, args: readonly unknown[], signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const call = ++this.calls;
    const abort = (): void => {
      this.waiting.get(call)?.reject(new DOMException('', 'AbortError'));
      this.port.postMessage({ kind: 'abort', call });
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      return await new Promise<T>((resolve, reject) => {
        this.waiting.set(call, { resolve: resolve as (answer: unknown) => void, reject });
        this.port.postMessage({ kind: 'call', call, name, args });
      });
    } finally {
      this.waiting.delete(call);
      signal?.removeEventListener('abort', abort);
    }
  }

  private take(reply: Reply): void {
    if (reply.kind === 'ready') return;
    const waiting = this.waiting.get(reply.call);
    if (reply.kind === 'answer') waiting?.resolve(reply.answer);
    else waiting?.reject(failureOf(reply));
  }

  private failAll(message: string): void {
    for (const { reject } of this.waiting.values()) reject(new Error(message));
  }
}

/** Returns the worker when it runs, or null if the browser does not allow it. */
export async function startWorker(make: () => Worker): Promise<Worker | null> {
  try {
    const worker = make();
    return await new Promise((resolve) => {
      worker.onmessage = () => resolve(worker);
      worker.onerror = (event) => {
        event.preventDefault();
        resolve(null);
      };
    });
  } catch {
    return null;
  }
}
