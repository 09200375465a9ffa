// Two small recordings for tests, made by make_recordings.py: the training of a model, and that of
// a wider one.

import { readFileSync } from 'node:fs';
import type { DataSource } from '../data/data_source';
import { archiveFrom } from '../data/embedded/archive';
import { EmbeddedSource } from '../data/embedded_source';
import type { BlockTile, FileMeta, Found, StackInfo } from '../data/protocol';
import { NO_ROW } from '../data/protocol';
import { NO_FILTER } from '../state/state';

const HTML = readFileSync(new URL('recordings.html', import.meta.url), 'utf8');

/** Returns the data of a standalone file by name, as a browser's parser finds them. */
export function partsIn(html: string): Map<string, string[]> {
  const parts = new Map<string, string[]>();
  for (const [, name, text] of html.matchAll(/<script type="application\/octet-stream" data-gmt="([^"]*)">([^<]*)<\/script>/g)) {
    parts.set(name!, [...(parts.get(name!) ?? []), text!]);
  }
  return parts;
}

export function recordedSource(): EmbeddedSource {
  return new EmbeddedSource(archiveFrom(partsIn(HTML)));
}

export async function recordedFile(): Promise<FileMeta> {
  return (await recordedSource().meta()).files[0]!;
}

/** Returns the time of each event of the first recording, in ns. */
export async function clockOf(source: DataSource): Promise<Float64Array> {
  const columns = (await source.meta()).files[0]!.events + 1;
  return (await source.curve({ file: 0, lane: 0, axis: 'event', from: 0, to: columns, columns })).ns;
}

/** Returns all blocks of the first lane that match. */
export async function blocksOf(source: DataSource, filter = NO_FILTER): Promise<Found> {
  const to = (await source.meta()).files[0]!.events;
  return source.find({ file: 0, lane: 0, filter, of: 'born', from: 0, to }, NO_ROW, 10_000);
}

/** Returns a function that returns the stacks of a tile, also those of forward passes. */
export async function stacksOf(source: DataSource, { stack, forward_stack: forward }: BlockTile): Promise<(id: number) => StackInfo> {
  const stacks = new Map((await source.stacks(0, [...new Set([...stack, ...forward])])).map((info) => [info.stack, info]));
  return (id) => stacks.get(id)!;
}
