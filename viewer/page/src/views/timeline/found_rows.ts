// Which blocks of a picture a filter's text finds, for what the page does not know of them: names and
// addresses. Asked for once for each picture; until the answer is there, that of the one before it stands.

import { activity } from '../../base/activity';
import type { DataSource } from '../../data/data_source';
import { NO_ROW, type Filter, type Found, type Scope } from '../../data/protocol';
import { asksAddresses, expressionOf } from '../../data/text_filter';
import type { Picture } from './tiles';

/** What a page of `find` has at the most. What is beyond it is told by frames alone. */
const MOST = 10_000;

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

  /** Of a filter with a text. The same function as long as the answer is. */
  look(picture: Shown, filter: Filter): RowTest {
    const lane = laneOf(picture);
    if (this.known?.filter !== filter || this.known.lane !== lane) this.known = { filter, lane, test: unknownTest(filter) };
    if (this.asked?.picture !== picture || this.asked.filter !== filter) {
      this.abort.abort();
      this.abort = new AbortController();
      this.asked = { picture, filter };
      if (isReadable(filter.text)) void activity.track(this.ask(picture, filter, this.abort.signal));
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
      const found = await Promise.all(scopes.map((scope) => this.source.find(scope, NO_ROW, MOST, signal)));
      if (signal.aborted) return;
      this.known = { filter, lane: laneOf(picture), test: testOf(found, filter) };
    } catch {
      return; // the tables say why; frames are known without it
    }
    this.onChange();
  }
}

function laneOf({ subject }: Shown): string {
  return `${subject.file}/${subject.lane}/${subject.window}`;
}

function isReadable(text: string): boolean {
  try {
    expressionOf(text);
    return true;
  } catch {
    return false;
  }
}

/** The blocks that the picture may have: held at its first column or taken since, and not smaller than any of it. */
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
  return isWhole ? (row) => rows.has(row) : (row) => rows.has(row) || unknownTest(filter)(row);
}

// Few blocks lie at an address; beginnings of addresses are many blocks', and no frame has them.
function unknownTest(filter: Filter): RowTest {
  const passes = asksAddresses(filter.text);
  return () => passes;
}
