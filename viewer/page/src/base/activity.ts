// Tracks whether the page still has work under way: a question, a layout, a frame. Tests wait until
// it has none.

export class Activity {
  private count = 0;
  private waiting: (() => void)[] = [];

  /**
   * Begins one piece of work. Returns the function that ends it; calling that twice has no further
   * effect.
   */
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

  /** Resolves when no work is under way and none has begun while `settle()` ran. */
  async idle(settle: () => Promise<void>): Promise<void> {
    do {
      if (this.busy()) await new Promise<void>((resolve) => this.waiting.push(resolve));
      await settle();
    } while (this.busy());
  }

  /**
   * Calls `call` when no work has been under way for the duration of `settle`, or after `most` ms.
   * Returns a function that cancels the call.
   */
  after(call: () => void, settle: () => Promise<void>, most: number): () => void {
    let isOpen = true;
    const end = (isCalled: boolean): void => {
      if (!isOpen) return;
      isOpen = false;
      clearTimeout(timer);
      if (isCalled) call();
    };
    const timer = setTimeout(end, most, true);
    void this.idle(settle).then(() => end(true));
    return () => end(false);
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const each of waiting) each();
  }
}

/** Work of the whole page. */
export const activity = new Activity();

/** Answers to a click. Work that can wait does so while one of these is under way. */
export const urgent = new Activity();
