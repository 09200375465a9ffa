// Pages of a long list that is stored elsewhere: tracks which pages to ask for and keeps the rows
// that have come. Keeps the MAX_PAGES pages that were used last.

export const PAGE_ROWS = 200;
const MAX_PAGES = 32;

export class Pages<Row> {
  private readonly pages = new Map<number, readonly Row[] | null>(); // null: requested; least recently used first

  rowAt(index: number): Row | undefined {
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  /**
   * Returns the pages that rows [first, end) need and that were not requested yet, and marks them
   * as requested.
   */
  takeMissing(first: number, end: number): number[] {
    const missing: number[] = [];
    for (let page = Math.floor(first / PAGE_ROWS); page * PAGE_ROWS < end; page++) {
      const rows = this.pages.get(page);
      this.pages.delete(page);
      this.pages.set(page, rows ?? null);
      if (rows === undefined) missing.push(page);
    }
    for (const oldest of this.pages.keys()) {
      if (this.pages.size <= MAX_PAGES) break;
      this.pages.delete(oldest);
    }
    return missing;
  }

  put(page: number, rows: readonly Row[]): void {
    if (this.pages.has(page)) this.pages.set(page, rows);
  }

  /** Returns the pages that are present or requested. */
  numbers(): readonly number[] {
    return [...this.pages.keys()];
  }

  /** Forgets a page that failed, so that it can be requested again. */
  drop(page: number): void {
    this.pages.delete(page);
  }
}
