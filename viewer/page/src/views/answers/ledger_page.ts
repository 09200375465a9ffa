// What uses the device's memory, adding up to the figure that the driver reports.

import { formatPercent } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import type { Json } from '../../base/json';
import { bytes, delta, deviceName, named, NO_LINK, numbers, stackNumber, text, type Link, type Page, type Section } from './page';

export function ledgerPage(json: Json): Page {
  const devices = json.list('devices');
  return {
    tone: devices.some((device) => device.number('unexplained_bytes') !== 0) ? 'finding' : 'quiet',
    facts: [],
    notes: json.texts('lacks'),
    sections: devices.map(deviceRows),
    progress: null,
  };
}

const VIEW_OF_ROW: readonly (readonly [RegExp, Link['view']])[] = [
  [/live/, 'flame'],
  [/cached|reserved|segment/, 'segments'],
];

function deviceRows(device: Json): Section {
  const index = device.numberOrNull('device');
  const t_ns = device.number('t_ns');
  const used = device.number('driver_used_bytes');
  const unexplained = device.number('unexplained_bytes');
  const linkOf = (row: Json): Link | null => {
    const stack = stackNumber(row.text('stack'));
    const at: Link = { ...NO_LINK, device: index ?? -1, t_ns, stack };
    if (stack !== null) return at;
    const view = VIEW_OF_ROW.find(([pattern]) => pattern.test(row.text('name')))?.[1];
    return view === undefined ? null : { ...at, view };
  };
  const rows = device.list('rows').map((row) => [
    text(row.text('name')),
    bytes(row.number('bytes'), linkOf(row)),
    text(formatPercent(row.number('bytes'), used)),
    text(row.text('known_by')),
    text([...new Set([row.text('detail'), row.flag('releasable') ? 'empty_cache() would give it back' : ''])].filter((part) => part !== '').join('; ')),
  ]);
  const source = device.text('source');
  return {
    title: `${deviceName(index)}: ${bytes(used).text} in use`,
    note: `${device.text('at')}, ${formatDuration(t_ns)}; ${source === '' ? 'no driver figure; this is the sum of the rows' : `reported by ${source}`}.`,
    columns: [named('What'), numbers('Bytes'), numbers('Share'), named('Known by'), named('Details')],
    rows: [
      ...rows,
      ...(unexplained === 0 ? [] : [[text('unexplained'), delta(unexplained), text(''), text('driver minus rows'), text('')]]),
      [text('in use'), bytes(used), text('100 %'), text('sum'), text('')],
    ],
  };
}
