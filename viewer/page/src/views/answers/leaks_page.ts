// What grows from step to step.

import { formatBytes, formatCount } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import type { Json } from '../../base/json';
import type { Trend } from '../../widgets/trend_chart';
import {
  bytes,
  codeLine,
  delta,
  deviceName,
  line,
  named,
  NO_LINK,
  numbers,
  oneFrame,
  placeOf,
  EMPTY_PAGE,
  stackNumber,
  text,
  type Card,
  type Link,
  type Page,
  type Section,
} from './page';

const CARDS = 3; // as many as the program prints

/** `capacityOf`: the bytes of a device, null if unknown. */
export function leaksPage(json: Json, capacityOf: (device: number | null) => number | null = () => null): Page {
  const cycles = json.at('cycles');
  const suspects = json.list('suspects');
  const early = !json.flag('enough') && json.flag('has_history');
  const period = cycles.number('period_ns');
  return {
    ...EMPTY_PAGE,
    facts: [
      ['Steps', text(`${formatCount(cycles.number('count'))}${cycles.flag('inferred') ? ', inferred from the pattern of allocations' : ''}`)],
      ['Steps from', text(cycles.text('source') === '' ? 'none' : cycles.text('source'))],
      ['Watched', text(`${formatDuration(json.number('watched_ns'))}${period > 0 ? `, ${formatDuration(period)} per step` : ''}`)],
    ],
    notes: json.texts('lacks'),
    charts: json.list('minima').flatMap((minima) => {
      const trend = trendOf(minima, json, capacityOf);
      return trend === null ? [] : [{ kind: 'trend' as const, trend }];
    }),
    cards: suspects.slice(0, CARDS).map(suspectCard),
    sections: [growingRows(json), suspectRows(suspects), stackRows(suspects), floorRows(json), benignRows(json)].filter((section) => section.rows.length > 0),
    progress: early ? { have: cycles.number('count'), need: json.number('cycles_needed'), what: 'steps' } : null,
  };
}

function trendOf(minima: Json, json: Json, capacityOf: (device: number | null) => number | null): Trend | null {
  const device = minima.numberOrNull('device');
  const values = minima.list('values').map(({ value }) => Number(value));
  if (values.length < 2) return null;
  const eta = json.list('suspects').find((suspect) => suspect.numberOrNull('device') === device)?.numberOrNull('eta_ns') ?? null;
  const period = json.at('cycles').number('period_ns');
  return {
    title: `Held on ${deviceName(device)} at the minimum of each step`,
    values,
    stepsPerValue: Math.max(1, minima.number('cycles_per_value')),
    fitFrom: minima.number('first_cycle'),
    perStep: minima.number('bytes_per_cycle'),
    low: minima.number('low_bytes_per_cycle'),
    high: minima.number('high_bytes_per_cycle'),
    stepsToFull: eta === null || period === 0 ? null : eta / period,
    capacity: capacityOf(device),
  };
}

/** Returns the link to all blocks of a suspect, in a colour of their own. */
export function suspectLink(suspect: Json): Link | null {
  const stacks = suspect.list('stacks');
  if (stacks.length === 1) return linkOf(suspect, stacks[0]!.text('id'));
  const place = placeOf(suspect.at('common_frame'));
  return place === '' ? linkOf(suspect, stacks[0]?.text('id') ?? '') : { ...memoryOf(suspect), text: place };
}

function memoryOf(suspect: Json): Link {
  return { ...NO_LINK, device: suspect.numberOrNull('device') ?? -1, heap: suspect.text('heap'), colorBy: 'stack' };
}

function linkOf(suspect: Json, id: string): Link | null {
  const stack = stackNumber(id);
  return stack === null ? null : { ...memoryOf(suspect), stack };
}

function whereOf(suspect: Json): string {
  return oneFrame(suspect.at('common_frame')) || (suspect.list('stacks')[0]?.text('label') ?? '');
}

function interval(low: string, high: string): string {
  return low === high ? '' : ` (${low} to ${high})`;
}

function suspectCard(suspect: Json): Card {
  const link = suspectLink(suspect);
  const rate = suspect.number('bytes_per_cycle');
  const range = interval(formatBytes(suspect.number('low_bytes_per_cycle')), formatBytes(suspect.number('high_bytes_per_cycle')));
  const count = suspect.number('count');
  const since = suspect.number('since_cycle');
  const savers = suspect.at('alive').list('nodes')[0];
  const saved = savers === undefined ? '' : savers.text('label');
  const optional: readonly (readonly [string, string])[] = [
    ['Layer', suspect.text('layer')],
    ['Saved in', savers === undefined || savers.list('frames').length === 0 || saved === whereOf(suspect) ? '' : saved],
    ['Kept with', suspect.text('lock_step_with') === '' ? '' : `${suspect.text('lock_step_with')}, at the same steps: perhaps for the same reason`],
    ['Fix', suspect.text('fix')],
    ['Outlook', outlook(suspect)],
    ['Before attach', suspect.number('before_blocks') === 0 ? '' : `another ${formatBytes(suspect.number('before_bytes'))} in ${plural(suspect.number('before_blocks'), 'block')} of the same sizes`],
  ];
  return {
    title: text(
      `${suspect.text('id')}, ${suspect.text('tier')}: ${formatBytes(rate)} per step${range}, ${formatBytes(suspect.number('bytes'))}${count > 0 ? ` in ${plural(count, 'block')}` : ''}${since > 1 ? `, since step ${formatCount(since)}` : ''}`,
      link,
    ),
    lines: [
      line('What', text(`${suspect.text('what')}; ${suspect.text('reason')}`)),
      line('Where', text(whereOf(suspect), link)),
      ...(suspect.text('source') === '' ? [] : [codeLine('Source', suspect.text('source'))]),
      ...optional.filter(([, value]) => value !== '').map(([name, value]) => line(name, text(value))),
    ],
  };
}

function outlook(suspect: Json): string {
  const eta = suspect.numberOrNull('eta_ns');
  if (eta === null) return '';
  const [low, high] = [suspect.numberOrNull('low_eta_ns'), suspect.numberOrNull('high_eta_ns')];
  return `${deviceName(suspect.numberOrNull('device'))} is full in about ${formatDuration(eta)} at this rate${low === null || high === null ? '' : interval(formatDuration(low), formatDuration(high))}`;
}

function growingRows(json: Json): Section {
  return {
    title: 'Growing so far',
    note: 'A leak grows like this, and so does a cache or a queue until it is full.',
    columns: [named('What'), named('Where'), numbers('Per step'), numbers('Total'), numbers('Blocks')],
    rows: json.list('growing').map((growing) => {
      const link = suspectLink(growing);
      return [
        text(growing.text('what'), link),
        text(whereOf(growing), link),
        delta(growing.number('bytes_per_cycle'), link),
        bytes(growing.number('bytes'), link),
        text(formatCount(growing.number('count')), link),
      ];
    }),
  };
}

function suspectRows(suspects: readonly Json[]): Section {
  return {
    title: 'Suspects',
    note: 'Each number leads to its blocks on the timeline.',
    columns: [named('Suspect'), named('Verdict'), named('Where'), numbers('Per step'), numbers('Total'), numbers('Blocks'), numbers('Since step'), numbers('Full in')],
    rows: suspects.map((suspect) => {
      const link = suspectLink(suspect);
      const eta = suspect.numberOrNull('eta_ns');
      return [
        text(suspect.text('id'), link),
        text(suspect.text('tier')),
        text(whereOf(suspect), link),
        delta(suspect.number('bytes_per_cycle'), link),
        bytes(suspect.number('bytes'), link),
        text(formatCount(suspect.number('count')), link),
        text(formatCount(suspect.number('since_cycle'))),
        text(eta === null ? '' : formatDuration(eta)),
      ];
    }),
  };
}

function stackRows(suspects: readonly Json[]): Section {
  return {
    title: 'Stacks of the suspects',
    note: '',
    columns: [named('Suspect'), named('Stack'), numbers('Per step'), numbers('Total')],
    rows: suspects.flatMap((suspect) =>
      suspect.list('stacks').map((stack) => {
        const link = linkOf(suspect, stack.text('id'));
        return [
          text(suspect.text('id'), link),
          text(stack.text('label'), link),
          delta(stack.number('bytes_per_cycle'), link),
          bytes(stack.number('bytes'), link),
        ];
      }),
    ),
  };
}

function floorRows(json: Json): Section {
  return {
    title: 'Minimum per step, by device',
    note: 'A rising minimum is memory that no step frees.',
    columns: [named('Device'), numbers('From step'), numbers('First'), numbers('Last'), numbers('Per step')],
    rows: json
      .list('minima')
      .map((row) => {
        const link: Link = { ...NO_LINK, device: row.numberOrNull('device') ?? -1 };
        return [
          text(deviceName(row.numberOrNull('device')), link),
          text(formatCount(row.number('first_cycle'))),
          bytes(row.number('first_bytes'), link),
          bytes(row.number('last_bytes'), link),
          delta(row.number('bytes_per_cycle'), link),
        ];
      }),
  };
}

function benignRows(json: Json): Section {
  return {
    title: 'Expected growth',
    note: 'It is not a leak, or has ended.',
    columns: [named('What'), named('Where'), numbers('Bytes')],
    rows: json.list('benign').map((row) => {
      const name = row.at('frame').text('function');
      const link: Link | null = name === '' ? null : { ...NO_LINK, text: name, colorBy: 'stack' };
      return [text(row.text('label'), link), text(oneFrame(row.at('frame')), link), bytes(row.number('bytes'), link)];
    }),
  };
}
