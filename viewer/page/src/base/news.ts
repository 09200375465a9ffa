// Notifies components that data they asked about has changed, as in a live recording. A component
// that shows an answer asks again, and shows the old answer until the new one has arrived.

export class News {
  private count = 0;
  private readonly listeners = new Set<() => void>();

  /** Grows with each notification. */
  get version(): number {
    return this.count;
  }

  notify(): void {
    ++this.count;
    for (const listener of this.listeners) listener();
  }

  /** Returns the function that unsubscribes. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Changes of the whole page's data. */
export const news = new News();
