import { expect, it } from 'vitest';
import { DataError, type DataSource } from './data_source';
import { CallAnswerer, type Asked, type Reply } from './embedded/calls';
import type { Meta, Progress } from './protocol';
import { WorkerSource, type Port } from './worker_source';

// Both sides in one thread. Messages are copied, as between threads, and arrive later.
class Wire implements Port {
  onmessage: ((message: MessageEvent<Reply>) => void) | null = null;
  onerror: ((event: ErrorEvent) => void) | null = null;
  readonly sent: Asked[] = [];
  private readonly answerer: CallAnswerer;

  constructor(source: Partial<DataSource>) {
    this.answerer = new CallAnswerer(source as DataSource, (received) => {
      const data = structuredClone(received);
      queueMicrotask(() => this.onmessage?.({ data } as MessageEvent<Reply>));
    });
  }

  postMessage(asked: Asked): void {
    const copy = structuredClone(asked);
    this.sent.push(copy);
    if (copy.kind !== 'parts') queueMicrotask(() => this.answerer.take(copy));
  }
}

const META = { protocol: 1, version: '1', origin: 'file', files: [] } satisfies Meta;

it('passes on questions and answers, in whatever order they come', async () => {
  let answerFirst = (): void => undefined;
  const wire = new Wire({
    stacks: async (_file, ids) => {
      if (ids[0] === 1) await new Promise<void>((resolve) => (answerFirst = resolve));
      return ids.map((stack) => ({ stack, key: 0, label: `stack ${stack}`, site: '', backward_of: '', line: '', frames: [] }));
    },
  });
  const source = new WorkerSource(wire, new Map([['meta', ['x']]]));
  expect(wire.sent[0]).toEqual({ kind: 'parts', parts: new Map([['meta', ['x']]]) });
  const [first, second] = [source.stacks(0, [1]), source.stacks(0, [2])];
  expect((await second)[0]!.label).toBe('stack 2');
  answerFirst();
  expect((await first)[0]!.label).toBe('stack 1');
});

it('passes on an abort', async () => {
  let signalThere: AbortSignal | undefined;
  const wire = new Wire({
    source: (_file, _path, _line, signal) => {
      signalThere = signal;
      return new Promise(() => undefined);
    },
  });
  const abort = new AbortController();
  const asked = new WorkerSource(wire, new Map()).source(0, 'a.py', 1, abort.signal);
  await new Promise((resolve) => setTimeout(resolve, 0));
  abort.abort();
  await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(signalThere?.aborted).toBe(true);
});

it('distinguishes messages for people from internal failures', async () => {
  const fails = new Wire({ block: () => Promise.reject(new DataError('Block 7 is not in this file')), answer: () => Promise.reject(new RangeError('odd')) });
  const source = new WorkerSource(fails, new Map());
  await expect(source.block(0, 7)).rejects.toBeInstanceOf(DataError);
  await expect(source.block(0, 7)).rejects.toThrow('Block 7 is not in this file');
  await expect(source.answer(0, 'oom')).rejects.toThrow('odd');
});

it('reads the metadata of files once', async () => {
  let asked = 0;
  const source = new WorkerSource(new Wire({ meta: () => Promise.resolve((++asked, META)) }), new Map());
  const received: Progress[] = [];
  source.watchProgress((progress) => received.push(progress));
  expect(await source.meta()).toEqual(META);
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect([received, asked]).toEqual([[{ files: [] }], 1]);
});

it('fails pending questions when the worker fails', async () => {
  const wire = new Wire({ table: () => new Promise(() => undefined) });
  const asked = new WorkerSource(wire, new Map()).find({} as never, 0, 1);
  wire.onerror?.({ message: 'out of memory' } as ErrorEvent);
  await expect(asked).rejects.toThrow('out of memory');
});
