// Asking the same thing again and again, never twice at a time: what is news while a question is under
// way is asked for when that one is answered, however many there were.

export class Again {
  private isBusy = false;
  private isWanted = false;
  private isOver = false;

  /** `ask` fails for itself: it must not reject. */
  constructor(private readonly ask: () => Promise<void>) {}

  want(): void {
    if (this.isOver) return;
    if (this.isBusy) {
      this.isWanted = true;
      return;
    }
    this.isBusy = true;
    this.isWanted = false;
    void this.ask().then(() => {
      this.isBusy = false;
      if (this.isWanted) this.want();
    });
  }

  stop(): void {
    this.isOver = true;
  }
}
