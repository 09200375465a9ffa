// Whether the page still has something under way: a question, a layout, a frame. Tests wait for none.

export class Activity {
  private count = 0;
  private waiting: (() => void)[] = [];

  /** Returns what ends it; ending twice is once. */
  begin(): () => void {
    ++this.count;
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      if (--this.count === 0) this.wake();
    };
  }

  busy(): boolean {
    return this.count > 0;
  }

  async track<T>(work: Promise<T>): Promise<T> {
    const end = this.begin();
    try {
      return await work;
    } finally {
      end();
    }
  }

  /** Resolves when nothing is under way, and nothing began within `settle()` after that. */
  async idle(settle: () => Promise<void>): Promise<void> {
    do {
      if (this.busy()) await new Promise<void>((resolve) => this.waiting.push(resolve));
      await settle();
    } while (this.busy());
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const each of waiting) each();
  }
}

/** Of the whole page. */
export const activity = new Activity();
