// A recording of a standalone file. Each part is decoded once and then reused.

import { DataError } from '../data_source';
import type { Answer, Axis, FileMeta, SourceText } from '../protocol';
import { decodeSlab } from '../slab';
import type { Archive } from './archive';
import { EventList, type EventTable } from './event_list';
import { type FileTexts, type PackedStackTable, readClock, StackTable } from './file_data';
import { readLane } from './lane_data';
import { LoadedLane } from './loaded_lane';
import { type Positions, positionsOf } from './positions';
import type { PredictionTable } from './predicted_curve';
import { mapSegments, type SegmentMap, type SegmentTable } from './segment_map';
import { isAllocators } from './segments';

type PackedAnswer = Omit<Answer, 'name'>;

export class EmbeddedRecording {
  private readonly known = new Map<string, Promise<unknown>>();
  private readonly positions = new Map<Axis, Positions>();

  constructor(
    private readonly archive: Archive,
    readonly meta: FileMeta,
  ) {}

  clock(): Promise<Float64Array> {
    return this.once('clock', async () => readClock(decodeSlab(await this.take('clock'))));
  }
  stacks(): Promise<StackTable> {
    return this.once('stacks', async () => new StackTable((await this.json('stacks')) as PackedStackTable));
  }
  texts(): Promise<FileTexts> {
    return this.once('texts', async () => (await this.json('texts')) as FileTexts);
  }
  answers(): Promise<Readonly<Record<string, PackedAnswer>>> {
    return this.once('answers', async () => (await this.json('answers')) as Record<string, PackedAnswer>);
  }
  sources(): Promise<Readonly<Record<string, SourceText>>> {
    return this.once('sources', async () => (await this.json('sources')) as Record<string, SourceText>);
  }
  /** Returns the replays of a device with other settings. */
  async predictions(device: number): Promise<PredictionTable> {
    const all = await this.once('predictions', async () => (await this.json('predictions')) as Readonly<Record<string, PredictionTable>>);
    return all[String(device)] ?? {};
  }
  /** Returns the driver memory of a device's allocators after an event. */
  async segments(device: number, event: number): Promise<readonly SegmentMap[]> {
    const [table, lanes] = await Promise.all([this.once('segments', async () => (await this.json('segments')) as SegmentTable), this.lanes()]);
    const own = lanes.filter((lane) => lane.meta.device === device && isAllocators(lane));
    return mapSegments(event, { pieces: table[String(device)] ?? [], lanes: own, streams: this.meta.streams, imported: this.meta.imported_from !== '' });
  }
  events(device: number): Promise<EventList> {
    return this.once(`list/${device}`, async () => {
      const table = await this.once('events', async () => (await this.json('events')) as EventTable);
      const [lanes, stacks, ns] = await Promise.all([this.lanes(), this.stacks(), this.clock()]);
      const own = lanes.filter((lane) => lane.meta.device === device);
      return new EventList({ meta: this.meta, lanes: own, side: table[String(device)] ?? { rows: [], total: 0 }, stacks, ns });
    });
  }
  lanes(): Promise<readonly LoadedLane[]> {
    return Promise.all(this.meta.lanes.map(({ lane }) => this.lane(lane)));
  }
  lane(number: number): Promise<LoadedLane> {
    const meta = this.meta.lanes[number];
    if (meta === undefined) return Promise.reject(new DataError(`${this.meta.name} has no lane ${number}`));
    return this.once(`lane/${number}`, async () => {
      const data = readLane(decodeSlab(await this.take(`lane/${number}`)));
      return new LoadedLane(number, meta, data, this.meta.categories.length);
    });
  }
  async positionsOn(axis: Axis): Promise<Positions> {
    if (axis === 'step' && this.meta.steps.source === '') throw new DataError(`${this.meta.name} has no steps`);
    const clock = await this.clock();
    let positions = this.positions.get(axis);
    if (positions === undefined) this.positions.set(axis, (positions = positionsOf(axis, clock, this.meta.steps, this.meta.end_ns)));
    return positions;
  }

  private take(part: string): Promise<ArrayBuffer> {
    return this.archive.take(`${this.meta.file}/${part}`);
  }
  private async json(part: string): Promise<unknown> {
    return JSON.parse(new TextDecoder().decode(await this.take(part)));
  }
  private once<T>(name: string, make: () => Promise<T>): Promise<T> {
    let known = this.known.get(name) as Promise<T> | undefined;
    if (known === undefined) this.known.set(name, (known = make()));
    return known;
  }
}
