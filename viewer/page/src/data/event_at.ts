// Returns the last event at or before a time, to link the times in answers to moments of views.

import type { DataSource } from './data_source';

export async function eventAt(source: DataSource, file: number, lane: number, ns: number, signal?: AbortSignal): Promise<number> {
  const window = { file, lane, axis: 'time', from: ns, to: ns + 1, columns: 1 } as const;
  return (await source.curve(window, signal)).event[0] ?? 0;
}
