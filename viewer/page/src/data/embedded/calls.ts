// The messages between a DataSource in a worker and the page. Each side trusts the other, because
// both belong to the same page.

import { DataError, type DataSource, messageOf } from '../data_source';

export type Question = Exclude<keyof DataSource, 'watchProgress' | 'load' | 'useWindows' | 'moved'>;

/** Sent to the worker: the parts, first and once, then calls and aborts. */
export type Asked =
  | { readonly kind: 'parts'; readonly parts: Map<string, readonly string[]> }
  | { readonly kind: 'call'; readonly call: number; readonly name: Question; readonly args: readonly unknown[] }
  | { readonly kind: 'abort'; readonly call: number };

/** Sent by the worker. 'ready' means that it runs, so the browser allows it. */
export type Reply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'answer'; readonly call: number; readonly answer: unknown }
  | { readonly kind: 'failure'; readonly call: number; readonly name: 'DataError' | 'AbortError' | 'Error'; readonly message: string };

type Method = (...args: readonly unknown[]) => Promise<unknown>;

/** The worker's side: answers calls from `source`, each with its own abort signal. */
export class CallAnswerer {
  private readonly underWay = new Map<number, AbortController>();

  constructor(
    private readonly source: DataSource,
    private readonly send: (reply: Reply) => void,
  ) {}

  take(asked: Exclude<Asked, { kind: 'parts' }>): void {
    if (asked.kind === 'abort') this.underWay.get(asked.call)?.abort();
    else void this.answer(asked.call, asked.name, asked.args);
  }

  private async answer(call: number, name: Question, args: readonly unknown[]): Promise<void> {
    const abort = new AbortController();
    this.underWay.set(call, abort);
    try {
      const method = this.source[name].bind(this.source) as Method;
      this.send({ kind: 'answer', call, answer: await method(...args, abort.signal) });
    } catch (error) {
      const message = messageOf(error);
      const isAbort = error instanceof DOMException && error.name === 'AbortError';
      this.send({ kind: 'failure', call, name: isAbort ? 'AbortError' : error instanceof DataError ? 'DataError' : 'Error', message });
    } finally {
      this.underWay.delete(call);
    }
  }
}

export function failureOf(reply: Extract<Reply, { kind: 'failure' }>): Error {
  if (reply.name === 'AbortError') return new DOMException(reply.message, 'AbortError');
  return reply.name === 'DataError' ? new DataError(reply.message) : new Error(reply.message);
}
