// Answers questions from the page itself: a standalone file contains its data (viewer/html).
// Questions are answered over typed arrays by the same rules as the server's (embedded/). An error
// message says what the file lacks.

import { DataError, watchMeta, type DataSource } from './data_source';
import type { Archive } from './embedded/archive';
import { blockTest, type BlockTest, type FilterContext } from './embedded/block_filter';
import { detailsOf } from './embedded/details';
import { FlameTreeBuilder, sameCalls, styleOf, type StackWeight } from './embedded/flame';
import { dtypeOf, placeOf, roleCode } from './embedded/lane_data';
import { passingCurve } from './embedded/passing_curve';
import type { Positions } from './embedded/positions';
import { predictedCurve } from './embedded/predicted_curve';
import type { LoadedLane } from './embedded/loaded_lane';
import type { BoxContext } from './embedded/box_rows';
import { makeRangeTable } from './embedded/range_table';
import { EmbeddedRecording } from './embedded/recording';
import { absentOf, forEachBlock } from './embedded/scope_blocks';
import { isAllocators, segmentsAfter } from './embedded/segments';
import { columnsOf, selectPlaces, selectStacked, type StackedItems } from './embedded/select_blocks';
import { columnEvents, selectCurve, type ColumnEvents } from './embedded/select_curve';
import { makeTable } from './embedded/table';
import * as p from './protocol';

const MAX_COLUMNS = 8192;

interface PackedCompare {
  readonly file: number;
  readonly other: number;
  readonly compare: p.Compare;
}

export class EmbeddedSource implements DataSource {
  private known: Promise<{ meta: p.Meta; files: readonly EmbeddedRecording[] }> | null = null;
  private compares: Promise<readonly PackedCompare[]> | null = null;
  private comparedRanks: Promise<p.Ranks> | null = null;

  constructor(private readonly archive: Archive) {}

  async meta(): Promise<p.Meta> {
    return (await this.open()).meta;
  }

  watchProgress(onProgress: (progress: p.Progress) => void): () => void {
    return watchMeta(this.meta(), onProgress);
  }

  async curve(window: p.Window, signal?: AbortSignal): Promise<p.CurveTile> {
    checkWindow(window);
    const file = await this.file(window.file);
    const [lane, positions, clock] = await Promise.all([file.lane(window.lane), file.positionsOn(window.axis), file.clock()]);
    signal?.throwIfAborted();
    return selectCurve(window, { totals: lane.totals(), series: lane.meta.series, positions, clock, categories: file.meta.categories.length });
  }

  async passing(query: p.PassingQuery, signal?: AbortSignal): Promise<p.PassingCurve> {
    checkWindow(query);
    const file = await this.file(query.file);
    const [lane, positions, context] = await Promise.all([file.lane(query.lane), file.positionsOn(query.axis), this.filterContext(query.file, query.lane)]);
    signal?.throwIfAborted();
    return passingCurve(query, blockTest(query.filter, context), { lane: lane.data, totals: lane.totals(), positions });
  }

  async predicted(query: p.PredictedQuery, signal?: AbortSignal): Promise<p.PredictedCurve> {
    checkWindow(query);
    const file = await this.file(query.file);
    const [lane, positions] = await Promise.all([file.lane(query.lane), file.positionsOn(query.axis)]);
    const table = await file.predictions(lane.meta.device);
    signal?.throwIfAborted();
    return predictedCurve(query, table, { totals: lane.totals(), positions });
  }

  async blocks(query: p.BlockQuery, signal?: AbortSignal): Promise<p.BlockTile> {
    checkWindow(query);
    if (!(query.rows > 0) || !(query.high > query.low)) throw new DataError('a window needs rows and a height');
    const file = await this.file(query.file);
    const [lane, positions, stacks] = await Promise.all([file.lane(query.lane), file.positionsOn(query.axis), file.stacks()]);
    signal?.throwIfAborted();
    const index = lane.index(query.axis, positions);
    const columns = columnEvents(query, { positions }, lane.totals());
    const items: StackedItems =
      query.layout === 'stacked'
        ? selectStacked(query, lane.data, index, columns)
        : withoutRuns(selectPlaces(query, lane.data, index, columns, (block) => placeOf(lane.data, block)));
    return tileOf(query, items, lane, file.meta, {
      columns,
      start: index.start,
      end: index.end,
      keyOf: (stack) => stacks.keyOf(stack),
      visible: index.countIn(query.from, query.to),
      spaces: query.layout === 'address' ? spacesIn(query, lane, positions) : [],
    });
  }

  async block(fileNumber: number, row: number, signal?: AbortSignal): Promise<p.BlockDetails> {
    const file = await this.file(fileNumber);
    for (const { lane: number } of file.meta.lanes) {
      const lane = await file.lane(number);
      signal?.throwIfAborted();
      const block = lane.blockOf(row);
      if (block < 0) continue;
      const [stacks, texts, ns] = await Promise.all([file.stacks(), file.texts(), file.clock()]);
      const segments = isAllocators(lane) ? await file.segments(lane.meta.device, lane.data.blocks.birth[block]!) : [];
      return detailsOf(block, { meta: file.meta, laneNumber: number, lane: lane.data, stacks, texts, ns, segments });
    }
    const { omitted } = file.meta;
    const smaller = omitted === null || omitted.blocks === 0 ? '' : `: blocks smaller than ${omitted.smaller_than} bytes were left out`;
    throw new DataError(`Block ${row} is not in this file${smaller}. Open the recording itself with: gpumemtrace view`);
  }

  async stacks(fileNumber: number, ids: readonly number[]): Promise<readonly p.StackInfo[]> {
    const stacks = await (await this.file(fileNumber)).stacks();
    return ids.map((id) => stacks.info(id));
  }

  async source(fileNumber: number, path: string, line: number): Promise<p.SourceText> {
    const sources = await (await this.file(fileNumber)).sources();
    return sources[`${path}:${line}`] ?? { path, first: line, lines: [], note: 'This file has source lines of the largest stacks only.' };
  }

  async flame(query: p.FlameQuery, signal?: AbortSignal): Promise<p.FlameTree> {
    const withLines = query.other === null || query.other.file === query.file;
    const builder = new FlameTreeBuilder(styleOf(query, withLines));
    await this.addToFlame(builder, query, false);
    signal?.throwIfAborted();
    if (query.other !== null) {
      const sameFile = query.other.file === query.file;
      const filter = sameFile ? query.filter : { ...query.filter, stack: null, forward_stack: null };
      const fits = sameFile ? null : sameCalls(query.filter, await (await this.file(query.file)).stacks(), await this.filterContext(query.other.file, query.other.lane));
      await this.addToFlame(builder, { ...query, filter, file: query.other.file, lane: query.other.lane, of: 'live', from: 0, to: query.other.to }, true, fits);
      signal?.throwIfAborted();
    }
    return builder.build();
  }

  async table(query: p.TableQuery, signal?: AbortSignal): Promise<p.Table> {
    const context = await this.filterContext(query.file, query.lane);
    const ns = await (await this.file(query.file)).clock();
    signal?.throwIfAborted();
    checkEvents(query, ns.length - 1);
    const test = blockTest(query.filter, context);
    return makeTable(query, { ...context, ns, test, absent: absentOf(context.lane, query, test) });
  }

  async range(query: p.RangeQuery, signal?: AbortSignal): Promise<p.RangeTable> {
    const file = await this.file(query.file);
    const [context, lane, ns] = await Promise.all([this.filterContext(query.file, query.lane), file.lane(query.lane), file.clock()]);
    signal?.throwIfAborted();
    const boxOf = async (range: p.EventRange | null): Promise<BoxContext | null> => {
      if (range === null) return null;
      checkEvents(range, ns.length - 1);
      if (range.box === null) return null;
      const positions = await file.positionsOn(range.box.axis);
      return { positions, index: lane.index(range.box.axis, positions) };
    };
    const boxes = { range: await boxOf(query), other: await boxOf(query.other) };
    signal?.throwIfAborted();
    return makeRangeTable(query, boxes, { ...context, ns, totals: lane.totals(), test: blockTest(query.filter, context) });
  }

  async segments(fileNumber: number, laneNumber: number, event: number, signal?: AbortSignal): Promise<p.Segments> {
    const file = await this.file(fileNumber);
    const [lane, lanes, stacks, ns] = await Promise.all([file.lane(laneNumber), file.lanes(), file.stacks(), file.clock()]);
    if (!(event >= 0 && event < ns.length)) throw new DataError(`events go from 0 to ${ns.length - 1}`);
    const segments = await file.segments(lane.meta.device, event);
    signal?.throwIfAborted();
    return segmentsAfter(event, { meta: file.meta, lane, lanes, segments, stacks, ns });
  }

  async events(query: p.EventsQuery, signal?: AbortSignal): Promise<p.EventPage> {
    const file = await this.file(query.file);
    const list = await file.events((await file.lane(query.lane)).meta.device);
    signal?.throwIfAborted();
    return list.answer(query);
  }

  async answer(fileNumber: number, name: p.AnswerName): Promise<p.Answer> {
    const answers = await (await this.file(fileNumber)).answers();
    const answer = answers[name];
    if (answer === undefined) throw new DataError(`This file was made without the answer '${name}'. Ask for it with: gpumemtrace ${name}`);
    return { name, ...answer };
  }

  async compare(file: number, other: number): Promise<p.Compare> {
    this.compares ??= this.archive.has('compare') ? this.readJson<readonly PackedCompare[]>('compare') : Promise.resolve([]);
    const found = (await this.compares).find((one) => one.file === file && one.other === other);
    if (found === undefined) throw new DataError('This file has no comparison of these two. Make one with: gpumemtrace diff A B');
    return found.compare;
  }

  async ranks(): Promise<p.Ranks> {
    return (this.comparedRanks ??= this.readJson<p.Ranks>('ranks'));
  }

  async find(scope: p.Scope, after: number, limit: number, signal?: AbortSignal): Promise<p.Found> {
    const context = await this.filterContext(scope.file, scope.lane);
    signal?.throwIfAborted();
    const { row, birth, death, kind } = context.lane.blocks;
    let found: number[] = [];
    forEachBlock(context.lane, scope, blockTest(scope.filter, context), (block) => found.push(block));
    // In growth, freed blocks come after allocated ones; here all are needed by birth.
    if (scope.of === 'growth') found = [...Uint32Array.from(found).sort()];
    const begin = after === p.NO_ROW ? 0 : found.findIndex((block) => row[block] === after) + 1;
    const page = found.slice(begin, begin + limit);
    return {
      rows: page.map((block) => row[block]!),
      birth: page.map((block) => birth[block]!),
      death: page.map((block) => death[block]!),
      size: page.map((block) => context.lane.kinds.size[kind[block]!]!),
      total: found.length,
    };
  }

  private async addToFlame(builder: FlameTreeBuilder, scope: p.Scope, isBefore: boolean, fits: ((kind: number) => boolean) | null = null): Promise<void> {
    const context = await this.filterContext(scope.file, scope.lane);
    const { lane, stacks } = context;
    const matches = blockTest(scope.filter, context);
    const test: BlockTest | null = fits === null ? matches : (block) => fits(lane.blocks.kind[block]!) && (matches === null || matches(block));
    const weights = new Map<string, StackWeight>();
    forEachBlock(lane, scope, test, (block, sign) => {
      const k = lane.blocks.kind[block]!;
      addWeight(weights, { stack: lane.kinds.stack[k]!, forward: lane.kinds.forward[k]!, category: lane.kinds.category[k]!, bytes: sign * lane.kinds.size[k]!, blocks: sign });
    });
    const absent = absentOf(lane, scope, test);
    for (const entry of absent.stacks?.entries ?? []) addWeight(weights, entry);
    const inOrder = [...weights.values()].sort((a, b) => a.stack - b.stack || a.forward - b.forward || a.category - b.category);
    for (const weight of inOrder) builder.addStack(stacks, weight, isBefore);
    if (absent.stacks === null) builder.addAbsent(absent, isBefore);
  }

  private async filterContext(fileNumber: number, laneNumber: number): Promise<FilterContext> {
    const file = await this.file(fileNumber);
    const [lane, stacks, texts] = await Promise.all([file.lane(laneNumber), file.stacks(), file.texts()]);
    return { meta: file.meta, stacks, texts, lane: lane.data };
  }

  private async file(number: number): Promise<EmbeddedRecording> {
    const file = (await this.open()).files[number];
    if (file === undefined) throw new DataError(`There is no file ${number}`);
    return file;
  }

  private open(): Promise<{ meta: p.Meta; files: readonly EmbeddedRecording[] }> {
    this.known ??= this.readJson<p.Meta>('meta').then((meta) => ({
      meta,
      files: meta.files.map((file) => new EmbeddedRecording(this.archive, file)),
    }));
    return this.known;
  }

  private async readJson<T>(name: string): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.archive.take(name))) as T;
  }
}

function addWeight(weights: Map<string, StackWeight>, { stack, forward, category, bytes, blocks }: StackWeight): void {
  const key = `${stack}+${forward}+${category}`;
  const weight = weights.get(key) ?? { stack, forward, category, bytes: 0, blocks: 0 };
  weight.bytes += bytes;
  weight.blocks += blocks;
  weights.set(key, weight);
}

function checkWindow({ from, to, columns }: p.Window): void {
  const makesSense = Number.isFinite(from) && Number.isFinite(to) && from < to && Number.isInteger(columns) && columns > 0;
  if (!makesSense || columns > MAX_COLUMNS) throw new DataError(`a window needs a length and 1 to ${MAX_COLUMNS} columns`);
}

function checkEvents({ from, to }: { readonly from: number; readonly to: number }, last: number): void {
  if (!(from >= 0) || !(to >= 0) || from > last || to > last) throw new DataError(`events go from 0 to ${last}`);
}

function withoutRuns(blocks: readonly number[]): StackedItems {
  return { item: [...blocks], category: [], runBegin: new Array<number>(blocks.length + 1).fill(0), runColumn: [], runBytes: [] };
}

/**
 * Returns the lane's segments with their lives inside the window. Lives less than a column apart
 * are joined.
 */
function spacesIn(query: p.BlockQuery, lane: LoadedLane, positions: Positions): p.AddressSpace[] {
  const width = (query.to - query.from) / query.columns;
  const first = positions.eventAt(query.from);
  const last = Math.max(first, positions.eventsBefore(query.to) - 1);
  return lane.data.spaces.map((space) => {
    const lives: [number, number][] = [];
    for (const [birth, death] of space.lives) {
      if (birth > last || death <= first) continue;
      const from = positions.of(birth);
      const to = death === Infinity ? Infinity : positions.of(death);
      const before = lives.at(-1);
      if (before !== undefined && from - before[1] < width) before[1] = to;
      else lives.push([from, to]);
    }
    return { ...space, lives };
  });
}

interface TileContext {
  readonly columns: ColumnEvents;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly keyOf: (stack: number) => number;
  readonly visible: number;
  readonly spaces: readonly p.AddressSpace[];
}

function tileOf(query: p.BlockQuery, items: StackedItems, lane: LoadedLane, meta: p.FileMeta, context: TileContext): p.BlockTile {
  const { blocks, kinds, flags, alives, tensors } = lane.data;
  // Many blocks share a text.
  const roles = alives.map((alive) => roleCode(alive));
  const dtypes = tensors.map((tensor) => Math.max(0, meta.dtypes.indexOf(dtypeOf(tensor))));
  const { item } = items;
  const column = (value: (block: number, kind: number) => number, ofRun = 0): number[] =>
    item.map((block) => (block < 0 ? ofRun : value(block, blocks.kind[block]!)));
  const columns = item.map((block) => (block < 0 ? ([0, 0] as const) : columnsOf(block, blocks, context.columns)));
  return {
    query,
    row: Uint32Array.from(column((block) => blocks.row[block]!, p.NO_ROW)),
    start: Float64Array.from(column((block) => context.start[block]!)),
    end: Float64Array.from(column((block) => context.end[block]!)),
    first: Uint16Array.from(columns, ([first]) => first),
    last: Uint16Array.from(columns, ([, last]) => last),
    size: Float64Array.from(column((_, k) => kinds.size[k]!)),
    place: Float64Array.from(column((block) => (query.layout === 'address' ? placeOf(lane.data, block) : 0))),
    stack: Uint32Array.from(column((_, k) => kinds.stack[k]!)),
    forward_stack: Uint32Array.from(column((_, k) => kinds.forward[k]!)),
    key: Uint32Array.from(column((_, k) => context.keyOf(kinds.stack[k]!))),
    category: Uint8Array.from(item, (block, i) => (block < 0 ? items.category[i]! : kinds.category[blocks.kind[block]!]!)),
    stream: Uint16Array.from(column((_, k) => kinds.stream[k]!)),
    thread: Uint16Array.from(column((_, k) => kinds.thread[k]!)),
    role: Uint8Array.from(column((_, k) => roles[kinds.alive[k]! - 1] ?? 0)),
    dtype: Uint16Array.from(column((_, k) => dtypes[kinds.tensor[k]! - 1] ?? 0)),
    flags: Uint8Array.from(column((block) => flags[block]!)),
    run_begin: Uint32Array.from(items.runBegin),
    run_column: Uint16Array.from(items.runColumn),
    run_bytes: Float64Array.from(items.runBytes),
    hidden: context.visible - item.filter((block) => block >= 0).length,
    spaces: context.spaces,
  };
}
