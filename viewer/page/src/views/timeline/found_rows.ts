// Finds the blocks of a picture that a filter's text matches by name, address, tensor or why they
// were alive, which the page does not know. They are requested once per picture. Until the answer has come, that of the
// previous picture is used.

import { activity } from '../../base/activity';
import type { DataSource } from '../../data/data_source';
import { NO_ROW, type Filter, type Found, type Scope } from '../../data/protocol';
import { asksAddresses, errorOfText } from '../../data/text_filter';
import type { Picture } from './tiles';

/** Maximum number of rows in a page of `find`. Rows beyond it are matched by their frames only. */
const MAX_ROWS = 10_000;

export type RowTest = (row: number) => boolean;
type Shown = Pick<Picture, 'subject' | 'curve' | 'blocks'>;

export class FoundRows {
  private asked: { readonly picture: Shown; readonly filter: Filter } | null = null;
  private known: { readonly filter: Filter; readonly lane: string; readonly test: RowTest } | null = null;
  private abort = new AbortController();

  constructor(
    private readonly source: DataSource,
    private readonly onChange: () => void,
  ) {}

  /**
   * Returns the test for a filter with text. Returns the same function until another answer has
   * come.
   */
  look(picture: Shown, filter: Filter): RowTest {
    const lane = laneOf(picture);
    if (this.known?.filter !== filter || this.known.lane !== lane) this.known = { filter, lane, test: defaultTest(filter) };
    if (this.asked?.picture !== picture || this.asked.filter !== filter) {
      this.abort.abort();
      this.abort = new AbortController();
      this.asked = { picture, filter };
      if (errorOfText(filter.text) === '') void activity.track(this.ask(picture, filter, this.abort.signal));
    }
    return this.known.test;
  }

  stop(): void {
    this.abort.abort();
    this.asked = null;
  }

  private async ask(picture: Shown, filter: Filter, signal: AbortSignal): Promise<void> {
    const scopes = scopesOf(picture, filter);
    if (scopes.length === 0) return;
    try {
      const found = await Promise.all(scopes.map((scope) => this.source.find(scope, NO_ROW, MAX_ROWS, signal)));
      if (signal.aborted) return;
      this.known = { filter, lane: laneOf(picture), test: testOf(found, filter) };
    } catch {
      return; // the tables show the error; frames match without it
    }
    this.onChange();
  }
}

function laneOf({ subject }: Shown): string {
  return `${subject.file}/${subject.lane}/${subject.window}`;
}

/**
 * Returns the scopes of the blocks that the picture may contain: held at its first column or
 * allocated since, and not smaller than its smallest block.
 */
export function scopesOf({ subject, curve, blocks }: Shown, filter: Filter): Scope[] {
  let smallest = Infinity;
  for (let i = 0; i < blocks.row.length; ++i) {
    if (blocks.row[i] !== NO_ROW && blocks.size[i]! < smallest) smallest = blocks.size[i]!;
  }
  if (smallest === Infinity) return [];
  const from = curve.event[0]!;
  const to = curve.event.at(-1)!;
  const common = { file: subject.file, lane: subject.lane, filter: { ...filter, min_size: Math.max(smallest, filter.min_size ?? 0) } };
  return [{ ...common, of: 'live', from: 0, to: from }, { ...common, of: 'born', from, to }];
}

function testOf(found: readonly Found[], filter: Filter): RowTest {
  const rows = new Set(found.flatMap((page) => page.rows));
  const isWhole = found.every((page) => page.rows.length === page.total);
  return isWhole ? (row) => rows.has(row) : (row) => rows.has(row) || defaultTest(filter)(row);
}

// An address matches few blocks, but the beginning of an address matches many, and no frame
// contains it.
function defaultTest(filter: Filter): RowTest {
  const passes = asksAddresses(filter.text);
  return () => passes;
}
