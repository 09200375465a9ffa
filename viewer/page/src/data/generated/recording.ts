// A generated recording of a training run: parameters, activations, gradients, optimizer state, a
// leak, and a caching allocator's segments. The same seed gives the same recording. For tests and
// development; never part of the shipped page.

import { Random } from '../../base/random';
import { NEVER, type Frame, type StepsMeta } from '../protocol';

export interface Block {
  readonly row: number;
  readonly lane: number;
  readonly size: number;
  readonly place: number;
  readonly segment: number; // row of the segment; for a segment, its own row
  readonly stack: number;
  readonly category: number;
  readonly stream: number;
  readonly thread: number;
  readonly birth: number; // event, from 1; 0: before the recording
  death: number; // NEVER
  pending: boolean;
}

export interface StackEntry {
  readonly key: number;
  readonly label: string;
  readonly frames: readonly Frame[];
}

export interface Recording {
  readonly blocks: readonly Block[];
  readonly times: readonly number[]; // ns of event i + 1
  readonly stacks: readonly StackEntry[]; // index = id; 0: none
  readonly steps: StepsMeta;
  readonly endNs: number;
}

export interface Shape {
  readonly seed: number;
  readonly steps: number;
  readonly layers: number;
}

export const CATEGORIES = ['unknown', 'parameters', 'gradients', 'optimizer state', 'activations', 'temporaries', 'workspaces'] as const;
export const MIB = 1024 * 1024;
const SEGMENT = 64 * MIB;

export function makeRecording(shape: Shape): Recording {
  return new Maker(shape).make();
}

class Maker {
  private readonly random: Random;
  private readonly blocks: Block[] = [];
  private readonly times: number[] = [];
  private readonly stacks: StackEntry[] = [{ key: 0, label: '', frames: [] }];
  private readonly segments: Block[] = [];
  private readonly held = new Map<number, Block[]>(); // by segment row, sorted by place
  private nextPlace = 0;
  private now = 0;
  private readonly begins: number[] = [];
  private readonly ends: number[] = [];

  constructor(private readonly shape: Shape) {
    this.random = new Random(shape.seed);
  }

  make(): Recording {
    const { layers, steps } = this.shape;
    const sizes = Array.from({ length: layers }, () => (1 + this.random.below(24)) * MIB);
    for (const [layer, size] of sizes.entries()) this.take(size, 1, this.stack('model.py', 30 + layer, ['__init__', 'build', 'main']));
    for (let step = 0; step < steps; ++step) this.step(step, sizes);
    const ns = (events: readonly number[]): number[] => events.map((event) => (event === 0 ? 0 : this.times[event - 1]!));
    return {
      blocks: this.blocks,
      times: this.times,
      stacks: this.stacks,
      endNs: this.now + 50e6,
      steps: { source: 'optimizer steps', inferred: false, begin: this.begins, end: this.ends, begin_ns: ns(this.begins), end_ns: ns(this.ends) },
    };
  }

  private step(step: number, sizes: readonly number[]): void {
    this.begins.push(this.times.length);
    this.now += 20e6;
    const saved: Block[] = [];
    for (const [layer, size] of sizes.entries()) {
      saved.push(this.take(size * 2, 4, this.stack('model.py', 80 + layer, ['forward', '__call__', 'train'])));
      this.temporary(size, this.stack('layers.py', 12 + (layer % 5), ['matmul', 'forward', '__call__', 'train']));
    }
    const gradients: Block[] = [];
    for (const [i, size] of [...sizes].reverse().entries()) {
      gradients.push(this.take(size, 2, this.stack('train.py', 52, ['backward', 'train']), 1));
      this.temporary(size / 2, this.stack('train.py', 52, ['grad_input', 'backward', 'train']));
      this.free(saved[saved.length - 1 - i]!, i % 7 === 0);
    }
    if (step === 0) for (const size of sizes) this.take(size * 2, 3, this.stack('optim.py', 91, ['_init_state', 'step', 'train']));
    for (const gradient of gradients) this.free(gradient, false);
    this.take(MIB + 512 * step, 0, this.stack('train.py', 66, ['log_metrics', 'train'])); // the leak
    this.ends.push(this.times.length);
  }

  private temporary(size: number, stack: number): void {
    for (let i = 0; i < 3; ++i) this.free(this.take(Math.max(512, (size >> (2 * i)) & ~511), 5, stack), false);
  }

  private take(size: number, category: number, stack: number, thread = 0): Block {
    const { segment, place } = this.findPlace(size);
    const block: Block = {
      row: this.blocks.length, lane: 0, size, place, segment: segment.row, stack, category,
      stream: this.random.below(8) === 0 ? 1 : 0, thread, birth: this.event(), death: NEVER, pending: false,
    };
    this.blocks.push(block);
    const held = this.held.get(segment.row)!;
    held.push(block);
    held.sort((a, b) => a.place - b.place);
    return block;
  }

  private free(block: Block, pending: boolean): void {
    block.death = this.event();
    block.pending = pending;
    const held = this.held.get(block.segment)!;
    held.splice(held.indexOf(block), 1);
  }

  private event(): number {
    this.now += 1000 + this.random.below(400_000);
    this.times.push(this.now);
    return this.times.length;
  }

  // Returns the first hole that fits, or a place in a new segment if there is none.
  private findPlace(size: number): { segment: Block; place: number } {
    for (const segment of this.segments) {
      let at = segment.place;
      for (const held of this.held.get(segment.row)!) {
        if (held.place - at >= size) break;
        at = held.place + held.size;
      }
      if (at + size <= segment.place + segment.size) return { segment, place: at };
    }
    const segment: Block = {
      row: this.blocks.length, lane: 1, size: Math.max(SEGMENT, size), place: this.nextPlace, segment: this.blocks.length,
      stack: this.stack('train.py', 40, ['cudaMalloc', 'train']), category: 0, stream: 0, thread: 0, birth: this.event(), death: NEVER, pending: false,
    };
    this.nextPlace += segment.size;
    this.blocks.push(segment);
    this.segments.push(segment);
    this.held.set(segment.row, []);
    return { segment, place: segment.place };
  }

  private stack(file: string, line: number, functions: readonly string[]): number {
    const label = `${file}:${line} ${functions[0]!}`;
    const known = this.stacks.findIndex((stack) => stack.label === label && stack.frames.length === functions.length + 1);
    if (known > 0) return known;
    const frames: Frame[] = functions.map((name, i) => ({
      function: name, file: `/src/${i === 0 ? file : 'train.py'}`, line: i === 0 ? line : 10 * i, library: '', kind: 'user',
    }));
    frames.unshift({ function: 'at::empty_cuda', file: '', line: 0, library: 'libtorch_cuda.so', kind: 'folded' });
    let key = 17;
    for (const letter of file + functions[0]!) key = (Math.imul(key, 31) + letter.charCodeAt(0)) >>> 0;
    this.stacks.push({ key, label, frames });
    return this.stacks.length - 1;
  }
}
