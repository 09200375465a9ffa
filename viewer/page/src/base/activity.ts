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

  /**
   * Calls back once nothing has been under way for the time of `settle`, or after `most` ms. Returns what
   * calls that off.
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

/** Of the whole page. */
export const activity = new Activity();

/** Answers to a click: while one is under way, what can wait does. */
export const urgent = new Activity();
