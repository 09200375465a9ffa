// The tiles of one timeline: requests them, lays them out, and keeps what is shown meanwhile. A
// request that is no longer wanted is aborted. The previous tile is drawn until the next one is
// laid out.

import { activity } from '../../base/activity';
import { type DataSource, messageOf } from '../../data/data_source';
import type { Axis, BlockQuery, BlockTile, CurveTile, Layout } from '../../data/protocol';
import { isCoarse } from '../../state/live';
import { layoutAddress } from './address_layout';
import { StackedLayout, type LaidOut } from './stacked_layout';
import { covers, wantedTile, type VisibleArea } from './wanted';

const SLICE_MS = 5;
const AGAIN_MS = 2000;

export interface Subject {
  readonly file: number;
  readonly lane: number;
  readonly axis: Axis;
  readonly layout: Layout;
  readonly stage: string; // of loading; a change means that more may be known
  readonly window: number; // whose numbering the rows use, of a live recording; otherwise 0
}

/** One window, ready to be drawn. While only curves are known, `blocks` has no items. */
export interface Picture {
  readonly subject: Subject;
  readonly curve: CurveTile;
  readonly blocks: BlockTile;
  readonly laidOut: LaidOut;
}

export class Tiles {
  picture: Picture | null = null;
  failure = '';
  private failedAt = -Infinity;
  private isLoading = false;
  private asked: { readonly subject: Subject; readonly window: ReturnType<typeof wantedTile> } | null = null;
  private abort = new AbortController();

  constructor(
    private readonly source: DataSource,
    private readonly onChange: () => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Returns whether the last request shows `subject`, in any window. */
  isOf(subject: Subject): boolean {
    return this.asked !== null && same(this.asked.subject, subject);
  }

  /** Requests what the view needs, unless it is present or on its way. */
  look(subject: Subject, visible: VisibleArea): void {
    // A failed request is repeated after a while, because every frame calls this.
    const isFailed = this.failure !== '' && this.now() - this.failedAt > AGAIN_MS;
    if (!isFailed && this.asked !== null && this.isOf(subject) && covers(this.asked.window, visible)) return;
    // A request on its way is useful even if there is news: a live recording has news all the time.
    if (this.isLoading && this.asked !== null && isUseful(this.asked.subject, subject) && covers(this.asked.window, visible)) return;
    const window = wantedTile(visible);
    this.abort.abort();
    this.abort = new AbortController();
    this.asked = { subject, window };
    this.failedAt = Infinity; // not until this request has failed too
    if (this.picture !== null && !drawable(this.picture.subject, subject)) this.picture = null;
    this.isLoading = true;
    void activity.track(this.load(subject, window, this.abort.signal));
  }

  stop(): void {
    this.isLoading = false;
    this.abort.abort();
    this.asked = null;
  }

  private async load(subject: Subject, window: ReturnType<typeof wantedTile>, signal: AbortSignal): Promise<void> {
    try {
      const { file, lane, axis, layout } = subject;
      const { from, to, columns } = window;
      const query: BlockQuery = { file, lane, axis, from, to, columns, layout, low: window.low, high: window.high, rows: window.rows };
      const [curve, blocks] = await Promise.all([
        this.source.curve({ file, lane, axis, from, to, columns }, signal),
        // Curves are known before blocks. The picture then has only curves.
        isCoarse(subject.stage) ? noBlocks(query) : this.source.blocks(query, signal),
      ]);
      const laidOut = await layOut(blocks, curve, signal);
      if (signal.aborted) return;
      this.failure = '';
      this.picture = { subject, curve, blocks, laidOut };
    } catch (error) {
      if (signal.aborted) return;
      this.failedAt = this.now();
      this.failure = messageOf(error);
    }
    this.isLoading = false;
    this.onChange();
  }
}

async function layOut(tile: BlockTile, curve: CurveTile, signal: AbortSignal): Promise<LaidOut> {
  if (tile.query.layout === 'address') return layoutAddress(tile);
  const layout = new StackedLayout(tile, curve, (tile.query.high - tile.query.low) / tile.query.rows / 4);
  while (!layout.run(performance.now() + SLICE_MS, () => performance.now())) {
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (signal.aborted) throw new DOMException('', 'AbortError');
  }
  return layout.finish();
}

function same(a: Subject, b: Subject): boolean {
  return drawable(a, b) && a.stage === b.stage;
}

function isUseful(coming: Subject, wanted: Subject): boolean {
  return drawable(coming, wanted) && coming.window === wanted.window;
}

// Returns whether a picture shows the same thing, possibly at another stage of loading.
function drawable(a: Subject, b: Subject): boolean {
  return a.file === b.file && a.lane === b.lane && a.axis === b.axis && a.layout === b.layout;
}

function noBlocks(query: BlockQuery): BlockTile {
  return {
    query, row: new Uint32Array(0), start: new Float64Array(0), end: new Float64Array(0), first: new Uint16Array(0), last: new Uint16Array(0), size: new Float64Array(0),
    place: new Float64Array(0), stack: new Uint32Array(0), forward_stack: new Uint32Array(0), key: new Uint32Array(0), category: new Uint8Array(0),
    stream: new Uint16Array(0), thread: new Uint16Array(0), role: new Uint8Array(0), dtype: new Uint16Array(0), flags: new Uint8Array(0), run_begin: new Uint32Array(1),
    run_column: new Uint16Array(0), run_bytes: new Float64Array(0), hidden: 0, spaces: [],
  };
}
