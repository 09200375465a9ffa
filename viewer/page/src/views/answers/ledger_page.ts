// What uses the device's memory, adding up to the figure that the driver reports.

import { formatBytes, formatPercent } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import type { Json } from '../../base/json';
import type { Hue } from '../../render/palette';
import {
  bytes, delta, deviceName, named, NO_LINK, numbers, EMPTY_PAGE, stackNumber, text, type Cell, type Chart, type Link, type LinkedPart, type Page, type Section,
} from './page';

export function ledgerPage(json: Json): Page {
  const devices = json.list('devices');
  return {
    ...EMPTY_PAGE,
    notes: [...devices.flatMap(notCounted), ...json.texts('lacks')],
    charts: [...devices.map(deviceBar), ...devices.map(memoryChart)],
    sections: devices.map(deviceRows),
  };
}

// As the program names and orders them.
const GROUPS = ['reserved', 'outside_framework', 'not_apart', 'other_process', 'system'] as const;
const HUES: Readonly<Record<string, readonly Hue[]>> = {
  reserved: ['blue', 'sky', 'navy', 'teal', 'silver'],
  outside_framework: ['amber', 'brown', 'yellow', 'olive'],
  not_apart: ['plum'],
  other_process: ['pink', 'plum'],
  system: ['olive'],
};
const UNEXPLAINED: Hue = 'vermilion';

const VIEW_OF_ROW: readonly (readonly [RegExp, Link['view']])[] = [
  [/live/, 'flame'],
  [/cached|holes|reserved|segment|pools|awaiting/, 'segments'],
];

function rowLink(device: Json, row: Json): Link | null {
  const stack = stackNumber(row.text('stack'));
  const at: Link = { ...NO_LINK, device: device.numberOrNull('device') ?? -1, t_ns: device.number('t_ns'), stack };
  if (stack !== null) return { ...at, colorBy: 'stack' };
  const view = VIEW_OF_ROW.find(([pattern]) => pattern.test(row.text('name')))?.[1];
  return view === undefined ? null : { ...at, view };
}

function rowsIn(device: Json, group: string): readonly Json[] {
  return device.list('rows').filter((row) => row.text('group') === group);
}

function sumOf(rows: readonly Json[]): number {
  return rows.reduce((sum, row) => sum + row.number('bytes'), 0);
}

function hasDriversFigure(device: Json): boolean {
  return device.text('source') !== '';
}

function deviceBar(device: Json): Chart {
  const used = device.number('driver_used_bytes');
  const unexplained = device.number('unexplained_bytes');
  const parts: LinkedPart[] = GROUPS.flatMap((group) =>
    rowsIn(device, group).map((row, i) => {
      const hues = HUES[group]!;
      return { name: row.text('name'), bytes: row.number('bytes'), hue: hues[i % hues.length]!, link: rowLink(device, row) };
    }),
  );
  const total = device.numberOrNull('total_bytes');
  return {
    kind: 'bar',
    title: `${deviceName(device.numberOrNull('device'))}: the parts of what is in use`,
    parts: unexplained > 0 ? [...parts, { name: 'unexplained', bytes: unexplained, hue: UNEXPLAINED, link: null }] : parts,
    marks: [
      ...(hasDriversFigure(device) ? [{ name: sourceName(device), bytes: used }] : []),
      ...(total === null ? [] : [{ name: 'capacity', bytes: total }]),
    ],
  };
}

function memoryChart(device: Json): Chart {
  const index = device.numberOrNull('device');
  return { kind: 'memory', title: `${deviceName(index)} over time`, device: index };
}

function detailOf(row: Json): string {
  const count = row.number('count');
  const isLive = row.text('name') === 'live blocks';
  const inPools = row.number('private_bytes');
  const detail = inPools > 0 ? `free in private pools of ${formatBytes(inPools)}` : row.text('detail');
  if (count > 1 || (count === 1 && isLive)) {
    const counted = plural(count, isLive ? 'block' : 'allocation');
    return detail === '' ? counted : `${counted}${isLive ? ' ' : ': '}${detail}`;
  }
  return detail;
}

function deviceRows(device: Json): Section {
  const used = device.number('driver_used_bytes');
  const unexplained = device.number('unexplained_bytes');
  const reported = device.numberOrNull('reported_process_bytes');
  const total = device.numberOrNull('total_bytes');
  const cells = (row: Json): Cell[] => [
    text(row.text('name')),
    bytes(row.number('bytes'), rowLink(device, row)),
    text(formatPercent(row.number('bytes'), used)),
    text(row.text('known_by')),
    text(detailOf(row)),
  ];
  const sum = (name: string, amount: number, detail: string): Cell[] => [text(name), bytes(amount), text(formatPercent(amount, used)), text('sum'), text(detail)];
  const rows = (group: string): Cell[][] => rowsIn(device, group).map(cells);
  const reserved = rowsIn(device, 'reserved');
  return {
    title: `${deviceName(device.numberOrNull('device'))}: ${bytes(used).text} in use`,
    note: `${momentWords(device)}${readingWords(device)}.`,
    place: 'beside',
    columns: [named('What'), numbers('Bytes'), numbers('Share'), named('Known by'), named('Details')],
    rows: [
      ...rows('reserved'),
      ...(reserved.length > 1 ? [sum('= reserved', sumOf(reserved), 'what the allocator took from the driver')] : []),
      ...rows('outside_framework'),
      sum('= this process', device.number('process_bytes'), reported === null ? '' : `${sourceName(device)} reports ${formatBytes(reported)}`),
      ...rows('not_apart'),
      ...rows('other_process'),
      ...rows('system'),
      ...(unexplained === 0 ? [] : [[text('unexplained'), delta(unexplained), text(''), text('remainder'), text(unexplainedWords(device))]]),
      ...(hasDriversFigure(device) ? [sum('= in use', used, total === null ? '' : `of ${formatBytes(total)}`)] : []),
    ],
  };
}

function momentWords(device: Json): string {
  const at = device.text('at');
  const time = formatDuration(device.number('t_ns'));
  return at === 'peak' ? `At the peak, ${time}` : `At ${at}, ${time}`;
}

/** Returns the source of the driver's figure as it stands in a sentence. */
function sourceName(device: Json): string {
  const source = device.text('source');
  return source === 'nvml' ? 'NVML' : source;
}

const NEAR_NS = 1e6;

function readingWords(device: Json): string {
  const reading = device.at('reading');
  if (!hasDriversFigure(device) || reading.isNull()) return '; the driver was not queried, so this is the sum of the rows';
  const later = reading.number('t_ns') - device.number('t_ns');
  const when = Math.abs(later) < NEAR_NS ? '' : ` ${formatDuration(Math.abs(later))} ${later > 0 ? 'later' : 'earlier'}`;
  const since = reading.number('recorded_since_bytes');
  const recorded = since === 0 ? '' : `, recorded ${later > 0 ? 'until' : 'since'} then ${delta(since).text}`;
  return `; ${sourceName(device)} reported ${formatBytes(reading.number('used_bytes'))}${when}${recorded}`;
}

function unexplainedWords(device: Json): string {
  const unexplained = device.number('unexplained_bytes');
  const inProcess = device.number('unexplained_in_process_bytes');
  if (unexplained < 0) return 'more was recorded than the driver reports';
  if (inProcess === unexplained) return 'in this process: no event explains it';
  return inProcess === 0 ? 'in no known process' : `${delta(inProcess).text} of it in this process`;
}

function notCounted(device: Json): string[] {
  return device.list('not_counted').map((each) => `Not counted: ${formatBytes(each.number('bytes'))} of ${each.text('name')}, ${each.text('why')}.`);
}
