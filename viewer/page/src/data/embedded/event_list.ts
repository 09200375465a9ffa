// The list of what happened on a device in a standalone file, as viewer/questions/event_list.h makes
// it. Births and deaths of blocks are those of the lanes; all other entries are in the file as they are.

import { lowerBound } from '../../base/binary_search';
import { formatCount } from '../../base/format_bytes';
import { DataError } from '../data_source';
import { EVENT_KINDS, type EventKind, type EventPage, type EventRow, type EventsQuery, type FileMeta } from '../protocol';
import { hex } from './block_filter';
import type { StackTable } from './file_data';
import { addressOf } from './lane_data';
import type { LoadedLane } from './loaded_lane';

/** The entries of a device that are no births or deaths of blocks. */
export interface SideEvents {
  readonly rows: readonly EventRow[]; // in order
  readonly total: number; // in the recording
}
export type EventTable = Readonly<Record<string, SideEvents>>; // by device

export interface EventContext {
  readonly meta: FileMeta;
  readonly lanes: readonly LoadedLane[]; // those of one device
  readonly side: SideEvents;
  readonly stacks: StackTable;
  readonly ns: Float64Array;
}

/** What happens to a block at an event. */
interface Change {
  readonly lane: LoadedLane;
  readonly block: number;
  readonly isDeath: boolean;
}

const STEPS: readonly EventKind[] = ['free_refused', 'segment_alloc', 'segment_free']; // events of their own

const bitOf = (kind: EventKind): number => 2 ** EVENT_KINDS.indexOf(kind);

export class EventList {
  private readonly last: number;
  private readonly laneAt: Uint8Array; // by event: 1 + index in lanes; 0: no block of this file
  private readonly blockAt: Uint32Array; // by event: twice the block, plus 1 for its death
  private readonly counts: readonly number[];
  private order: { readonly kinds: number; readonly entries: Uint32Array } | null = null;

  constructor(private readonly context: EventContext) {
    const { lanes, side, ns } = context;
    this.last = ns.length - 1;
    this.laneAt = new Uint8Array(ns.length);
    this.blockAt = new Uint32Array(ns.length);
    lanes.forEach(({ data: { blocks } }, lane) => {
      for (let i = 0; i < blocks.count; i++) {
        this.put(blocks.birth[i]!, lane, 2 * i);
        this.put(blocks.death[i]!, lane, 2 * i + 1);
      }
    });
    for (const row of side.rows) if (STEPS.includes(row.kind)) this.laneAt[row.event] = 0;
    const counts = EVENT_KINDS.map(() => 0);
    for (const entry of this.entriesOf(2 ** EVENT_KINDS.length - 1)) counts[EVENT_KINDS.indexOf(this.kindOf(entry))]!++;
    this.counts = counts;
  }

  answer({ kinds, offset, limit, event }: EventsQuery): EventPage {
    if (!(event >= 0 && event <= this.last)) throw new DataError(`events go from 0 to ${this.last}`);
    const entries = this.entriesOf(kinds);
    const first = lowerBound(entries.map((entry) => this.eventOf(entry)), event);
    const hasEntry = first < entries.length && this.eventOf(entries[first]!) === event;
    return {
      rows: Array.from(entries.subarray(offset, offset + limit), (entry) => this.rowOf(entry)),
      total: entries.length,
      position: hasEntry ? first : Math.max(0, first - 1),
      counts: this.counts,
      note: this.note(),
    };
  }

  private put(event: number, lane: number, change: number): void {
    if (event === 0 || event > this.last) return; // before the recording, or never
    this.laneAt[event] = lane + 1;
    this.blockAt[event] = change;
  }

  // An entry is the event of a block, or the number of events plus an index of the other entries.
  private entriesOf(kinds: number): Uint32Array {
    if (this.order?.kinds === kinds) return this.order.entries;
    const { rows } = this.context.side;
    const entries: number[] = [];
    const take = (entry: number): void => {
      if ((kinds & bitOf(this.kindOf(entry))) !== 0) entries.push(entry);
    };
    let next = 0;
    for (let event = 0; event <= this.last; event++) {
      if (this.laneAt[event] !== 0) take(event);
      for (; next < rows.length && rows[next]!.event === event; next++) take(this.last + 1 + next);
    }
    this.order = { kinds, entries: Uint32Array.from(entries) };
    return this.order.entries;
  }

  private eventOf(entry: number): number {
    return entry <= this.last ? entry : this.context.side.rows[entry - this.last - 1]!.event;
  }

  private kindOf(entry: number): EventKind {
    if (entry > this.last) return this.context.side.rows[entry - this.last - 1]!.kind;
    const { lane, block, isDeath } = this.changeAt(entry);
    if (!isDeath) return 'alloc';
    const { blocks } = lane.data;
    return blocks.completed[block] !== blocks.death[block] || lane.data.waited.has(block) ? 'free_requested' : 'free';
  }

  private changeAt(event: number): Change {
    const change = this.blockAt[event]!;
    return { lane: this.context.lanes[this.laneAt[event]! - 1]!, block: change >>> 1, isDeath: change % 2 === 1 };
  }

  private rowOf(entry: number): EventRow {
    const { meta, stacks, ns, side } = this.context;
    if (entry > this.last) return side.rows[entry - this.last - 1]!;
    const { lane, block } = this.changeAt(entry);
    const { blocks, kinds } = lane.data;
    const k = blocks.kind[block]!;
    return {
      event: entry,
      ns: ns[entry]!,
      kind: this.kindOf(entry),
      row: blocks.row[block]!,
      bytes: kinds.size[k]!,
      address: hex(addressOf(lane.data, block)),
      heap: lane.meta.heap,
      stream: meta.streams[kinds.stream[k]!] ?? 'unknown',
      text: stacks.labelOf(kinds.stack[k]!, kinds.forward[k]!),
    };
  }

  private note(): string {
    const { meta: { omitted }, side } = this.context;
    const notes: string[] = [];
    if (omitted !== null && omitted.blocks > 0) notes.push(`The events of ${formatCount(omitted.blocks)} small blocks are not in this file.`);
    if (side.total > side.rows.length) {
      notes.push(`Only the first ${formatCount(side.rows.length)} of ${formatCount(side.total)} events other than allocations and frees are in this file.`);
    }
    return notes.length === 0 ? '' : `${notes.join(' ')} The recording itself has them: gpumemtrace view`;
  }
}
