// An event log of a random training run: an allocator's blocks in its segments, some of backward
// passes, several streams and threads, private pools, expandable segments of pages, blocks that wait for a stream after they
// were freed, steps, memory that is never freed, pinned memory, a failed allocation, and samples of
// the driver's memory that begin some time after the start.

import { writeFileSync } from 'node:fs';
import type { Random } from '../src/testing/random';

const SEGMENT = 64 << 20;
const BASE = 0x7f0000000000;
const STEP = 400; // events

const FIRST_SAMPLE = 300; // line; before it nothing is known of the driver
const SAMPLE_EVERY = 53;
const PAGE = 20 << 20;
const PRIVATE_POOL = 0x77;

interface Held {
  readonly address: number;
  readonly size: number;
}

export function writeRandomLog(path: string, random: Random, events: number): void {
  const lines: object[] = [
    { kind: 'header', schema: 'gpumemtrace.events/1', start_unix_ns: 1_700_000_000_000_000_000, argv: ['train.py'], devices: [{ index: 0, name: 'GPU', total_bytes: 8 * 2 ** 30 }] },
  ];
  for (let id = 1; id <= 40; id++) lines.push({ kind: 'stack', id, frames: framesOf(id) });
  const run = new Run(random);
  while (lines.length < events) lines.push(...run.next());
  writeFileSync(path, lines.flatMap(withSample).map((line) => JSON.stringify(line)).join('\n') + '\n');
}

function withSample(line: object, i: number): object[] {
  if (i < FIRST_SAMPLE || i % SAMPLE_EVERY !== 0 || !('t_ns' in line)) return [line];
  const used_bytes = 2 ** 30 + ((i * 7919) % 4096) * 2 ** 16;
  return [line, { kind: 'sample', t_ns: line.t_ns, device: 0, used_bytes, total_bytes: 8 * 2 ** 30, source: 'nvml' }];
}

function framesOf(id: number): object[] {
  const own = { function: `layer_${id % 13}`, file: `/src/model_${id % 5}.py`, line: 10 + id, language: 'python' };
  const below = id % 3 === 0 ? [{ function: 'at::native::linear', module: '/lib/libtorch_cuda.so', language: 'c++' }] : [];
  return [...below, own, { function: 'train', file: '/src/train.py', line: 40 + (id % 2), language: 'python' }, { function: '<module>', file: '/src/train.py', line: 99, language: 'python' }];
}

/** Every third segment belongs to a private pool. */
function poolOf(address: number): number {
  return Math.floor((address - BASE) / (2 * SEGMENT)) % 3 === 2 ? PRIVATE_POOL : 0;
}

class Run {
  private time = 1000;
  private events = 0;
  private step = 0;
  private readonly segments: number[] = [];
  private readonly held: Held[] = [];
  private readonly free: number[] = [];
  private readonly awaiting: number[] = [];
  private pages = 0;
  private pinned = 0;

  constructor(private readonly random: Random) {}

  next(): object[] {
    this.time += this.random.below(5) === 0 ? 0 : this.random.below(20_000);
    this.events++;
    if (this.events % STEP === 0) return [{ kind: 'mark', t_ns: this.time, name: 'step', index: ++this.step, thread: 11 }];
    if (this.events % 1999 === 0) {
      return [{ kind: 'alloc_failed', t_ns: this.time, heap: 'pytorch', memory: 'block', device: 0, size: 2 ** 33, stack: 3, thread: 11, result: 2 }];
    }
    if (this.events % 97 === 0) return [this.pin()];
    if (this.awaiting.length > 0 && this.random.below(8) === 0) return [this.endWait()];
    const frees = this.held.length > 20 && this.random.next() < 0.49;
    return frees ? [this.freeBlock()] : this.allocBlock();
  }

  private pin(): object {
    this.pinned += 1 << 16;
    return { kind: 'alloc', t_ns: this.time, heap: 'host', memory: 'pinned', address: 0x7e0000000000 + this.pinned, size: 4096, stack: 5, thread: 12, api: 'cudaHostAlloc' };
  }

  private freeBlock(): object {
    // Young blocks tend to be freed first.
    const at = this.held.length - 1 - Math.floor(this.random.next() ** 3 * this.held.length);
    const [block] = this.held.splice(at, 1);
    // Some can be used again only later, when other streams are done with them.
    (this.random.below(10) === 0 ? this.awaiting : this.free).push(block!.address);
    return { kind: 'free', t_ns: this.time, heap: 'pytorch', memory: 'block', device: 0, address: block!.address, size: block!.size, thread: 11 };
  }

  private endWait(): object {
    const address = this.awaiting.shift()!;
    this.free.push(address);
    return { kind: 'free_done', t_ns: this.time, heap: 'pytorch', memory: 'block', device: 0, address, thread: 11 };
  }

  private allocBlock(): object[] {
    const lines: object[] = [];
    if (this.free.length === 0) lines.push(...this.segment());
    const address = this.free.splice(this.random.below(this.free.length), 1)[0]!;
    const size = 512 * Math.ceil(2 ** (this.random.next() * 12));
    const stack = 1 + this.random.below(40);
    const forward = this.random.below(4) === 0 ? { forward_stack: 1 + this.random.below(40) } : {};
    this.held.push({ address, size });
    const tensor = this.random.pick([{}, { dtype: 'float32', shape: '[8, 128]' }, { dtype: 'bfloat16', shape: '[]' }]);
    lines.push({ kind: 'alloc', t_ns: this.time, heap: 'pytorch', memory: 'block', device: 0, address, size, requested: size - this.random.below(512), stack, stream: this.random.pick([0, 0, 0, 0x7f00]), pool: poolOf(address), thread: this.random.pick([11, 11, 12]), ...forward, ...tensor });
    const role = this.random.pick([null, null, ['parameter'], ['gradient'], ['saved']]);
    if (role !== null) lines.push({ kind: 'role', t_ns: this.time, heap: 'pytorch', memory: 'block', device: 0, address, size, role, thread: 11, node: 'MulBackward0' });
    return lines;
  }

  private segment(): object[] {
    const address = BASE + this.segments.length * 2 * SEGMENT;
    this.segments.push(address);
    if (this.segments.length % 4 === 0) return this.expandable(address);
    for (let offset = 0; offset < SEGMENT; offset += 2 << 20) this.free.push(address + offset);
    return [{ kind: 'alloc', t_ns: this.time, heap: 'driver', memory: 'device', device: 0, address, size: SEGMENT, stack: 2, pool: poolOf(address), thread: 11, api: 'cudaMalloc' }];
  }

  /** Returns the events of an address range with pages mapped side by side. */
  private expandable(address: number): object[] {
    const common = { t_ns: this.time, heap: 'driver', memory: 'vmm', device: 0, stack: 2, thread: 11 };
    const lines: object[] = [{ ...common, kind: 'reserve', address, size: SEGMENT }];
    for (let at = address; at + PAGE <= address + SEGMENT; at += PAGE) {
      const handle = 0x5000 + ++this.pages;
      lines.push({ ...common, kind: 'create', handle, size: PAGE }, { ...common, kind: 'map', address: at, size: PAGE, handle });
      for (let offset = 0; offset + (2 << 20) <= PAGE; offset += 2 << 20) this.free.push(at + offset);
    }
    return lines;
  }
}
