// Coalesces repeated requests for the same thing: never has two questions under way. All requests
// that arrive while one is under way are served by one more question after it.

export class Coalesce {
  private isBusy = false;
  private isWanted = false;
  private isOver = false;

  /** `ask` handles its own errors: it must not reject. */
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
