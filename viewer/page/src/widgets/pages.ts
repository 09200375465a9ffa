// Pages of a long list that somebody else holds: which to ask for, and the rows that have come. At
// most MAX_PAGES stay; those looked at last.

export const PAGE_ROWS = 200;
const MAX_PAGES = 32;

export class Pages<Row> {
  private readonly pages = new Map<number, readonly Row[] | null>(); // null: asked for; oldest first

  rowAt(index: number): Row | undefined {
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  /** Pages that rows [first, end) need and nobody has asked for; they count as asked for from now. */
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

  /** Those that are there or asked for. */
  numbers(): readonly number[] {
    return [...this.pages.keys()];
  }

  /** A page that failed may be asked for again. */
  drop(page: number): void {
    this.pages.delete(page);
  }
}
