// That what is asked about has changed, as a recording does that goes on: whoever shows an answer asks
// again, and shows the old one until the new one is there.

export class News {
  private count = 0;
  private readonly listeners = new Set<() => void>();

  /** Grows with all that is told. */
  get version(): number {
    return this.count;
  }

  tell(): void {
    ++this.count;
    for (const listener of this.listeners) listener();
  }

  /** Returns what ends it. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Of the whole page. */
export const news = new News();
