// Stacks that were asked for, by file and id: names of thousands of blocks are a few hundred stacks.

import { activity } from '../base/activity';
import type { DataSource } from './data_source';
import type { StackInfo } from './protocol';

export class StackCache {
  private readonly known = new Map<string, StackInfo>();
  private readonly asked = new Set<string>();
  private stale = new Set<string>(); // known, and to be asked for again

  constructor(
    private readonly source: DataSource,
    private readonly onChange: () => void,
  ) {}

  get(file: number, id: number): StackInfo | null {
    return this.known.get(`${file}/${id}`) ?? null;
  }

  /** Names may have come. What is known is shown until it is asked for anew. */
  askAnew(): void {
    this.asked.clear();
    this.stale = new Set(this.known.keys());
  }

  /** Ids are another recording's from now on. */
  forget(): void {
    this.known.clear();
    this.asked.clear();
    this.stale.clear();
  }

  /** Asks for those that are neither known nor asked for; true: all are known. */
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
      for (const id of ids) this.asked.delete(`${file}/${id}`); // whoever wants them next asks again
      return;
    }
    this.onChange();
  }
}
