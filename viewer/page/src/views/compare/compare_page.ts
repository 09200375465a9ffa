// What changed between two recordings, as a page: per device what both hold at the aligned moment,
// and the stacks whose bytes differ.

import { plural } from '../../base/plural';
import type { Json } from '../../base/json';
import { words } from '../../base/words';
import { bytes, delta, deviceName, named, NO_LINK, numbers, EMPTY_PAGE, stackNumber, text, type Link, type Page, type Section } from '../answers/page';
import type { RowTest, Side } from './compare_filter';

/** Makes the page. `test` selects the rows to list; null lists all. */
export function comparePage(json: Json, test: RowTest | null = null): Page {
  const devices = json.list('devices');
  return {
    ...EMPTY_PAGE,
    notes: [
      ...json.texts('differences'),
      ...json.texts('base_lacks').map((lack) => `Base: ${lack}`),
      ...json.texts('new_lacks').map((lack) => `New: ${lack}`),
    ],
    sections: devices.map((device) => deviceRows(device, test)),
  };
}

/**
 * Returns the times, in ns, at which the base and the new recording are compared, or null if the
 * comparison has no such device.
 */
export function alignedTimes(json: Json, device: number | null): readonly [number, number] | null {
  const found = json.list('devices').find((each) => (each.numberOrNull('base_device') ?? -1) === device);
  const base = found?.numberOrNull('base_t_ns') ?? null;
  const changed = found?.numberOrNull('new_t_ns') ?? null;
  return base === null || changed === null ? null : [base, changed];
}

function deviceRows(device: Json, test: RowTest | null): Section {
  const change = device.number('delta_bytes');
  return {
    title: `${deviceName(device.numberOrNull('device'))}: ${delta(change).text}`,
    note: [
      `At ${device.text('aligned_on')} of both`,
      plural(device.number('new_stacks'), 'new stack'),
      `${device.number('gone_stacks')} gone`,
      `${device.number('moved_stacks')} with moved lines`,
    ].join(', '),
    place: 'beside',
    columns: [numbers('Change'), numbers('Base'), numbers('New'), numbers('Blocks'), named('Category'), named('Stack')],
    rows: [
      ...device.list('rows').filter(test ?? (() => true)).map((row) => stackRow(device, row)),
      test === null ? unchangedRow(device.at('unchanged')) : passingRow(device.list('rows').filter(test)),
      [delta(change), bytes(device.number('base_bytes')), bytes(device.number('new_bytes')), text(''), text(''), text(test === null ? 'total' : 'total of all stacks')],
    ],
  };
}

function unchangedRow(unchanged: Json): Section['rows'][number] {
  const held = bytes(unchanged.number('bytes'));
  return [delta(0), held, held, text(''), text(''), text(plural(unchanged.number('stacks'), 'unchanged stack'))];
}

function passingRow(rows: readonly Json[]): Section['rows'][number] {
  const sum = (key: string): number => rows.reduce((total, row) => total + row.number(key), 0);
  const words = rows.length === 0 ? 'no changed stack matches the filter' : `matching the filter: ${plural(rows.length, 'changed stack')}`;
  return [delta(sum('delta_bytes')), bytes(sum('base_bytes')), bytes(sum('new_bytes')), text(''), text(''), text(words)];
}

/**
 * A link to one side: links of a row's base lead to the base recording, the others to the new one.
 */
export interface SidedLink extends Link {
  readonly side: Side;
}

function stackRow(device: Json, row: Json): Section['rows'][number] {
  const link = (side: Side): SidedLink | null => {
    const stack = stackNumber(row.text(`${side}_id`));
    const index = device.numberOrNull(side === 'base' ? 'base_device' : 'device');
    return stack === null ? null : { ...NO_LINK, side, stack, device: index ?? -1, heap: row.text('heap'), t_ns: device.number(`${side}_t_ns`) };
  };
  const either = link('new') ?? link('base');
  const [before, after] = [row.number('base_count'), row.number('new_count')];
  return [
    delta(row.number('delta_bytes'), either),
    bytes(row.number('base_bytes'), link('base')),
    bytes(row.number('new_bytes'), link('new')),
    text(before === after ? String(after) : `${before} → ${after}`, either),
    text(words(row.text('category'))),
    text(`${row.text('label')}${row.flag('moved') ? ', moved' : ''}`, either),
  ];
}
