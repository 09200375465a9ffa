// Caches stacks by file and id: thousands of blocks have only a few hundred stacks.

import { activity } from '../base/activity';
import type { DataSource } from './data_source';
import type { StackInfo } from './protocol';

/** Returns the label of memory, or null if one of its stacks is not known yet. `forward` is 0 outside of backward passes. */
export function labelOf(stackOf: (stack: number) => StackInfo | null, stack: number, forward: number): string | null {
  const [info, before] = [stackOf(stack), forward === 0 ? null : stackOf(forward)];
  if (info === null) return null;
  if (forward === 0) return info.label;
  return before === null ? null : info.backward_of + before.line;
}

/**
 * Returns the label of a call site, or null if one of its stacks is not known yet. `stacks` has one
 * of its stacks with each forward stack (0: outside of backward passes), the most important first.
 * As in labelOf(), memory of a backward pass is named after the forward pass: the site itself is
 * only a function of autograd, which may run for many lines of the program.
 */
export function siteLabelOf(stackOf: (stack: number) => StackInfo | null, stacks: readonly (readonly [stack: number, forward: number])[]): string | null {
  const [first] = stacks;
  const infos = stacks.flat().filter((stack) => stack !== 0).map(stackOf);
  if (first === undefined || infos.includes(null)) return null;
  const [stack, forward] = first;
  if (forward === 0) return stackOf(stack)!.site;
  const forwards = stacks.map(([, each]) => each).filter((each) => each !== 0).map((each) => stackOf(each)!);
  const name = new Set(forwards.map(({ line }) => line)).size === 1 ? forwards[0]!.line : forwards[0]!.site;
  const others = new Set(forwards.map(({ site }) => site)).size - 1;
  return `${stackOf(stack)!.backward_of}${name}${others === 0 ? '' : ` and ${others} more`}`;
}

export class StackCache {
  private readonly known = new Map<string, StackInfo>();
  private readonly asked = new Set<string>();
  private stale = new Set<string>(); // known, but to be requested again

  constructor(
    private readonly source: DataSource,
    private readonly onChange: () => void,
  ) {}

  get(file: number, id: number): StackInfo | null {
    return this.known.get(`${file}/${id}`) ?? null;
  }

  /**
   * Requests all stacks again when they are next needed, because names may have come. Known ones
   * are shown until then.
   */
  refresh(): void {
    this.asked.clear();
    this.stale = new Set(this.known.keys());
  }

  /** Drops everything, because the ids now belong to another recording. */
  forget(): void {
    this.known.clear();
    this.asked.clear();
    this.stale.clear();
  }

  /** Requests the stacks that are neither known nor requested. Returns true if all are known. */
  want(file: number, ids: Iterable<number>): boolean {
    const missing: number[] = [];
    let complete = true;
    for (const id of ids) {
      const key = `${file}/${id}`;
      if (this.known.has(key) && !this.stale.has(key)) continue;
      complete &&= this.known.has(key);
      if (!this.asked.has(key)) {
        this.asked.add(key);
        missing.push(id);
      }
    }
    if (missing.length > 0) void activity.track(this.ask(file, missing));
    return complete;
  }

  private async ask(file: number, ids: readonly number[]): Promise<void> {
    try {
      for (const info of await this.source.stacks(file, ids)) {
        this.known.set(`${file}/${info.stack}`, info);
        this.stale.delete(`${file}/${info.stack}`);
      }
    } catch {
      for (const id of ids) this.asked.delete(`${file}/${id}`); // the next caller that wants them requests them again
      return;
    }
    this.onChange();
  }
}
