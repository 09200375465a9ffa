// The data of one recording in a standalone file: stacks, texts and times. Each is decoded when it
// is first needed.

import type * as p from '../protocol';
import type { Slab } from '../slab';
import { labelOf } from '../stack_cache';
import { PackedColumns } from './lane_data';

/**
 * Returns the times of all events; [0] is the beginning. Times between two stored points are
 * interpolated linearly.
 */
export function readClock(slab: Slab): Float64Array {
  const columns = new PackedColumns(slab);
  const points = columns.count('points');
  const event = columns.deltas('event', points);
  const ns = columns.deltas('ns', points);
  const out = new Float64Array(columns.count('events') + 1);
  for (let k = 0; k < points; k++) {
    const from = event[k]!;
    out[from] = ns[k]!;
    const to = k + 1 < points ? event[k + 1]! : from;
    const slope = k + 1 < points ? (ns[k + 1]! - ns[k]!) / (to - from) : 0;
    for (let e = from + 1; e < to; e++) out[e] = Math.round(ns[k]! + slope * (e - from));
  }
  return out;
}

/** The stacks in the file, by their ids. */
export class StackTable {
  private readonly frames: readonly p.Frame[];
  private readonly index: ReadonlyMap<number, number>;

  constructor(private readonly packed: PackedStackTable) {
    this.frames = packed.frames.map(([fn, file, line, library, kind]) => ({
      function: fn,
      file,
      line,
      library,
      kind: FRAME_KINDS[kind] ?? 'native',
    }));
    this.index = new Map(packed.ids.map((id, i) => [id, i]));
  }

  framesOf(stack: number): readonly p.Frame[] {
    return this.frameIds(stack).map((id) => this.frames[id]!);
  }
  /** Returns the ids of the frames. In all stacks the same id is the same frame. */
  frameIds(stack: number): readonly number[] {
    const i = this.index.get(stack);
    return i === undefined ? [] : this.packed.stacks[i]!;
  }
  frame(id: number): p.Frame {
    return this.frames[id]!;
  }
  keyOf(stack: number): number {
    const i = this.index.get(stack);
    return i === undefined ? 0 : this.packed.keys[i]!;
  }
  /**
   * Returns the program's own frame, for memory of a backward pass that of the forward pass unless the
   * program's Python code runs in the backward pass; null without frames.
   */
  ownOf(stack: number, forward: number): OwnFrame | null {
    const own = this.ownFrameOf(stack);
    return forward === 0 || own?.isPrograms === true ? own : this.ownFrameOf(forward);
  }
  info(stack: number): p.StackInfo {
    const i = this.index.get(stack);
    const text = (of: readonly string[], unknown: string): string => (i === undefined ? unknown : of[i]!);
    const { labels, sites, lines, backward_of } = this.packed;
    return {
      stack, key: this.keyOf(stack), label: text(labels, NO_STACK), site: text(sites, ''), backward_of: text(backward_of, 'backward of '), line: text(lines, NO_STACK),
      frames: this.framesOf(stack),
    };
  }
  labelOf(stack: number, forward: number): string {
    return labelOf((id) => this.info(id), stack, forward)!;
  }

  private ownFrameOf(stack: number): OwnFrame | null {
    const i = this.index.get(stack);
    const own = i === undefined ? null : this.packed.own[i]!;
    return own === null ? null : { functionLabel: own[0], fileLabel: own[1], place: own[2], isPrograms: own[3] };
  }
}

export interface OwnFrame {
  readonly functionLabel: string; // in tables by function
  readonly fileLabel: string;
  readonly place: string; // 'train.py:41'
  readonly isPrograms: boolean; // the program's Python code
}

const NO_STACK = 'no stack was recorded';

// In the order of viewer/questions/queries.h.
const FRAME_KINDS: readonly p.Frame['kind'][] = ['python', 'native', 'user', 'folded'];

export interface PackedStackTable {
  readonly frames: readonly (readonly [string, string, number, string, number])[];
  readonly ids: readonly number[];
  readonly keys: readonly number[];
  readonly labels: readonly string[];
  readonly sites: readonly string[];
  readonly lines: readonly string[];
  readonly backward_of: readonly string[];
  readonly stacks: readonly (readonly number[])[];
  readonly own: readonly (readonly [string, string, string, boolean] | null)[];
}

export interface FileTexts {
  readonly names: Readonly<Record<string, string>>; // by Kinds.name
  readonly reasons: readonly string[];
  readonly confidences: readonly string[];
}

/** Returns the name without its folders: "model.py". */
export function fileName(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1);
}

/** "model.py:41". */
export function placeOfFrame(frame: p.Frame): string {
  const name = fileName(frame.file);
  return name !== '' && frame.line > 0 ? `${name}:${frame.line}` : name;
}
