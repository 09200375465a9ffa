// What grows from step to step.

import { words } from '../../base/words';
import { formatDuration } from '../../base/format_time';
import type { Json } from '../../base/json';
import {
  bytes,
  delta,
  deviceName,
  frameWords,
  named,
  NO_LINK,
  numbers,
  oneFrame,
  stackNumber,
  text,
  type Link,
  type Page,
  type Section,
} from './page';

export function leaksPage(json: Json): Page {
  const cycles = json.at('cycles');
  const suspects = json.list('suspects');
  const early = !json.flag('enough');
  return {
    tone: early ? 'early' : suspects.length > 0 ? 'finding' : 'quiet',
    facts: [
      ['Steps', text(`${cycles.number('count')}${cycles.flag('inferred') ? ', inferred from the pattern of allocations' : ''}`)],
      ['Step source', text(cycles.text('source') === '' ? 'none' : cycles.text('source'))],
      ['Watched', text(formatDuration(json.number('watched_ns')))],
    ],
    notes: json.texts('lacks'),
    sections: [suspectRows(suspects), stackRows(suspects), floorRows(json), benignRows(json)].filter((section) => section.rows.length > 0),
    progress: early ? { have: cycles.number('count'), need: json.number('cycles_needed'), what: 'steps' } : null,
  };
}

function linkOf(suspect: Json, id: string): Link | null {
  const stack = stackNumber(id);
  const lane = { device: suspect.numberOrNull('device') ?? -1, heap: suspect.text('heap') };
  return stack === null ? null : { ...NO_LINK, ...lane, stack };
}

function suspectRows(suspects: readonly Json[]): Section {
  return {
    title: 'Suspects',
    note: 'Click a number to see its blocks on the timeline.',
    columns: [named('Confidence'), named('Where'), numbers('Per step'), numbers('So far'), numbers('Blocks'), numbers('Since step'), numbers('Full in'), named('Why')],
    rows: suspects.map((suspect) => {
      const stacks = suspect.list('stacks');
      const only = stacks.length === 1 ? linkOf(suspect, stacks[0]!.text('id')) : null;
      const eta = suspect.numberOrNull('eta_ns');
      const where = oneFrame(suspect.at('common_frame')) || frameWords(stacks[0]?.list('frames') ?? []);
      return [
        text(`${suspect.text('tier')}: ${words(suspect.text('kind'))}`),
        text(where, only),
        delta(suspect.number('bytes_per_cycle'), only),
        bytes(suspect.number('bytes'), only),
        text(String(suspect.number('count')), only),
        text(String(suspect.number('since_cycle'))),
        text(eta === null ? '' : formatDuration(eta)),
        text(suspect.text('reason')),
      ];
    }),
  };
}

function stackRows(suspects: readonly Json[]): Section {
  return {
    title: 'Stacks of the suspects',
    note: '',
    columns: [named('Suspect'), named('Stack'), numbers('Per step'), numbers('So far')],
    rows: suspects.flatMap((suspect) =>
      suspect.list('stacks').map((stack) => {
        const link = linkOf(suspect, stack.text('id'));
        return [
          text(suspect.text('id')),
          text(frameWords(stack.list('frames')), link),
          delta(stack.number('bytes_per_cycle'), link),
          bytes(stack.number('bytes'), link),
        ];
      }),
    ),
  };
}

function floorRows(json: Json): Section {
  return {
    title: 'Minimum held in a step, by device',
    note: 'A rising minimum is memory that no step frees.',
    columns: [named('Device'), numbers('First'), numbers('Last'), numbers('Per step')],
    rows: json
      .list('minima')
      .map((row) => {
        const link: Link = { ...NO_LINK, device: row.numberOrNull('device') ?? -1 };
        return [
          text(deviceName(row.numberOrNull('device')), link),
          bytes(row.number('first_bytes'), link),
          bytes(row.number('last_bytes'), link),
          delta(row.number('bytes_per_cycle'), link),
        ];
      }),
  };
}

function benignRows(json: Json): Section {
  return {
    title: 'Growth that is not a leak',
    note: '',
    columns: [named('What'), named('Where'), numbers('Bytes')],
    rows: json.list('benign').map((row) => {
      const name = row.at('frame').text('function');
      const link: Link | null = name === '' ? null : { ...NO_LINK, text: name };
      return [text(row.text('label')), text(oneFrame(row.at('frame')), link), bytes(row.number('bytes'), link)];
    }),
  };
}
