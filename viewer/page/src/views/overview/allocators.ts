// Which allocators held the memory of a device, as `gpumemtrace report` lists them.

import { formatBytes, formatCount } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import type { Json } from '../../base/json';
import { bytes, deviceName, named, numbers, text, type Link, type Section } from '../answers/page';

/** `device`: of the report. `at`: its moment. Returns null if nothing was allocated. */
export function allocatorsOf(device: Json, at: Link): Section | null {
  const allocators = device.list('allocators');
  if (allocators.length === 0) return null;
  return {
    title: `Allocators of ${deviceName(device.numberOrNull('index'))}`,
    note: roomWords(device.at('room')),
    columns: [named('Allocator'), numbers('At this peak'), numbers('Allocations'), numbers('Its own peak'), numbers('at')],
    // Only the time is a link: no lane shows one allocator's memory alone.
    rows: allocators.map((use) => [
      text(use.text('name')), bytes(use.number('live_bytes')), text(formatCount(use.number('live_count'))), bytes(use.number('peak_bytes')),
      text(formatDuration(use.number('peak_t_ns')), { ...at, t_ns: use.number('peak_t_ns') }),
    ]),
  };
}

/**
 * 'At this peak about 69.7 GiB were free of 80.0 GiB, the largest free piece of the cache had 256 MiB; a
 * request of up to 70.0 GiB would have succeeded.' '' if that is unknown.
 */
export function roomWords(room: Json): string {
  const free = room.numberOrNull('free_bytes');
  const total = room.numberOrNull('total_bytes');
  const cached = room.number('largest_cached_bytes');
  const piece = `the largest free piece of the cache had ${formatBytes(cached)}`;
  if (free === null) return cached === 0 ? '' : `At this peak ${piece}; free driver memory is unknown.`;
  const parts = [`At this peak about ${formatBytes(free)} were free${total === null ? '' : ` of ${formatBytes(total)}`}`, ...(cached > 0 ? [piece] : [])];
  return `${parts.join(', ')}; a request of up to ${formatBytes(room.number('largest_request_bytes'))} would have succeeded.`;
}
