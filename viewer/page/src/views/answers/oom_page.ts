// Why an allocation ran out of memory.

import { words } from '../../base/words';
import { pinRows, pinWords } from './frag_page';
import { formatBytes, formatCount, formatPercent } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import type { Json } from '../../base/json';
import type { Hue } from '../../render/palette';
import {
  bytes,
  codeLine,
  deviceName,
  line,
  named,
  NO_LINK,
  numbers,
  EMPTY_PAGE,
  stackNumber,
  text,
  type Card,
  type Cell,
  type Chart,
  type Link,
  type Page,
  type Section,
} from './page';

const STEPS_BEFORE = 3; // that the timeline shows
const STEP_IS_KNOWN_FROM: readonly string[] = ['first_step', 'earlier_steps'];

export function oomPage(json: Json): Page {
  if (['none', 'unknown'].includes(json.text('verdict'))) return { ...EMPTY_PAGE, notes: [...hostFailures(json), ...json.texts('findings')] };
  const device = json.numberOrNull('device');
  const at: Link = { ...NO_LINK, device, heap: json.text('heap'), t_ns: json.number('t_ns') };
  const facts: (readonly [string, Cell])[] = [
    ['Verdict', text(words(json.text('verdict')))],
    ['Confidence', text(json.text('confidence'))],
    ['Requested', bytes(json.number('requested_bytes'), { ...at, view: 'segments' })],
    ['When', text(whenWords(json), { ...at, steps: STEPS_BEFORE })],
    ['Where', text(deviceName(device))],
  ];
  return {
    ...EMPTY_PAGE,
    facts,
    notes: [...json.texts('findings'), ...failures(json), ...hostFailures(json)],
    charts: [deviceBar(json, at)],
    cards: [requestCard(json, at), ...comingCards(json)],
    sections: [advice('What helps', json.list('actions')), advice('What does not help', json.list('not')), whereItWas(json, at), byCategory(json, at), ...pinned(json, at), byStack(json, at)].filter(
      (section) => section.rows.length > 0,
    ),
  };
}

function whenWords(json: Json): string {
  const step = json.numberOrNull('step');
  const phase = words(json.text('phase'));
  return [
    formatDuration(json.number('t_ns')),
    ...(step === null ? [] : [`step ${formatCount(step)}`]),
    ...(phase === '' ? [] : [phase]),
    ...(json.at('fatal').value === false ? ['the program continued'] : []),
  ].join(', ');
}

function failures(json: Json): string[] {
  const evidence = json.at('evidence');
  const count = json.number('failures');
  const retries = evidence.number('retries');
  return [
    ...(count > 1 ? [`${plural(count, 'allocation')} failed; this page is about the first that mattered.`] : []),
    ...(retries > 0 ? [`${plural(retries, 'retry', 'retries')} since ${formatDuration(evidence.number('first_retry_t_ns'))}, each of which released the cache.`] : []),
  ];
}

function hostFailures(json: Json): string[] {
  const count = json.number('host_failures');
  return count > 0 ? [`${plural(count, 'allocation')} of pinned host memory failed: the host refused, not a GPU.`] : [];
}

function stackLink(at: Link, id: string): Link | null {
  const stack = stackNumber(id);
  return stack === null ? null : { ...at, stack, view: 'timeline', steps: STEPS_BEFORE, colorBy: 'stack' };
}

function requestCard(json: Json, at: Link): Card {
  const shape = shapeWords(json);
  const expected = expectationWords(json);
  const leak = json.text('leak');
  return {
    title: text(`The request for ${formatBytes(json.number('requested_bytes'))}`),
    lines: [
      line('By', text(json.text('label'), stackLink(at, json.text('stack')))),
      ...(json.text('source') === '' ? [] : [codeLine('Source', json.text('source'))]),
      ...(shape === '' ? [] : [line('Shape', text(shape))]),
      ...(expected === '' ? [] : [line('This step', text(expected))]),
      ...(leak === '' ? [] : [line('Leak', text(leak, { ...NO_LINK, view: 'leaks' }))]),
    ],
  };
}

// Share of the device from which on a request is a square not only by chance, as in the program's text.
const LARGE = 0.05;

/** Returns the tensor that was recorded; otherwise what the size suggests. */
function shapeWords(json: Json): string {
  const shape = json.text('shape');
  if (shape !== '') return `a ${json.text('dtype')} tensor of ${shape}`;
  const square = json.numberOrNull('square');
  if (square === null || json.number('requested_bytes') < LARGE * json.at('evidence').number('total_bytes')) return '';
  return `perhaps ${formatCount(square)} x ${formatCount(square)} elements`;
}

/** Returns what the whole step would have held, and how that is known. */
function expectationWords(json: Json): string {
  const evidence = json.at('evidence');
  const expected = evidence.at('expected');
  if (!STEP_IS_KNOWN_FROM.includes(expected.text('from'))) return '';
  const earlier = expected.number('earlier_steps');
  const before = earlier === 0 ? '' : ` (${formatCount(earlier)} before it: up to ${formatBytes(expected.number('earlier_peak_bytes'))})`;
  return `about ${formatBytes(expected.number('bytes'))}${before}, ${formatBytes(evidence.number('available_bytes'))} available`;
}

function comingCards(json: Json): Card[] {
  const coming = json.at('still_to_come');
  if (coming.isNull()) return [];
  const optimizer = coming.at('optimizer').text('class');
  const most = coming.number('most_optimizer_bytes');
  const least = coming.number('optimizer_bytes');
  return [{
    title: text('Still to come'),
    lines: [
      line('Gradients', text(`${formatBytes(coming.number('gradient_bytes'))}${coming.flag('observed') ? '' : ' (if all parameters get one)'}`)),
      line('Optimizer', text(`${least === most ? formatBytes(most) : `${formatBytes(least)} to ${formatBytes(most)}`} of state${optimizer === '' ? ' with Adam' : ` of ${optimizer}`}`)),
    ],
  }];
}

const PARTS_SHOWN = 2;

interface Part {
  readonly name: string; // as the program prints it
  readonly group: string; // the group of the ledger's rows that it consists of; '' if it consists of none
  readonly bytes: number;
  readonly hue: Hue;
  readonly link: Link;
}

/** Returns the parts of the device; together with what is unexplained they are its memory. */
function partsOf(json: Json, at: Link): Part[] {
  const evidence = json.at('evidence');
  const split = evidence.at('split');
  const segments: Link = { ...at, view: 'segments' };
  const ledger: Link = { ...at, view: 'ledger' };
  const isFramework = evidence.number('reserved_bytes') > 0;
  const part = (name: string, amount: number, hue: Hue, link: Link, group = ''): Part => ({ name, bytes: amount, hue, link, group });
  return [
    part(isFramework ? 'live blocks' : 'allocated by this process', evidence.number('live_bytes'), 'blue', { ...at, view: 'flame' }),
    part('free, pinned by blocks', split.number('pinned'), 'vermilion', segments),
    part('free, of other streams', split.number('stream'), 'amber', segments),
    part('free, releasable', split.number('releasable'), 'silver', segments),
    part('free, in private pools', split.number('private_pool'), 'plum', segments),
    part('awaiting streams', split.number('awaiting_stream'), 'sky', segments),
    part('outside the framework', evidence.number('outside_bytes'), 'brown', ledger, 'outside_framework'),
    part('other processes', evidence.number('other_processes_bytes'), 'pink', ledger, 'other_process'),
    part('contexts, code and other processes (not distinguished)', evidence.number('not_apart_bytes'), 'olive', ledger),
    part('driver and firmware', evidence.number('system_bytes'), 'navy', ledger),
    part('free, according to the driver', evidence.number('driver_free_bytes'), 'green', ledger),
  ].filter(({ bytes: amount }) => amount !== 0);
}

function deviceBar(json: Json, at: Link): Chart {
  const total = json.at('evidence').numberOrNull('total_bytes');
  return { kind: 'bar', title: 'Where the memory was', parts: partsOf(json, at), marks: total === null ? [] : [{ name: deviceName(json.numberOrNull('device')), bytes: total }] };
}

function whereItWas(json: Json, at: Link): Section {
  const evidence = json.at('evidence');
  const total = evidence.number('total_bytes');
  const parts = partsOf(json, at);
  const rest = total - parts.reduce((sum, part) => sum + part.bytes, 0);
  const row = (name: string, amount: number, link: Link | null): Cell[] => [text(name), bytes(amount, link), text(total === 0 || amount < 0 ? '' : formatPercent(amount, total))];
  const restName = evidence.numberOrNull('driver_free_bytes') === null ? 'unknown' : 'unexplained';
  return {
    title: `Memory of ${deviceName(json.numberOrNull('device'))}`,
    place: 'beside',
    note: `The largest free piece that the request could have used: ${bytes(evidence.number('largest_free_bytes')).text}.`,
    columns: [named('What'), numbers('Bytes'), numbers('Share')],
    rows: [
      ...parts.map((part) => row([part.name, partWords(json, part.group)].filter((words) => words !== '').join(': '), part.bytes, part.link)),
      ...(total === 0 || rest === 0 ? [] : [row(restName, rest, { ...at, view: 'ledger' })]),
      ...(total === 0 ? [] : [row(deviceName(json.numberOrNull('device')), total, null)]),
    ],
  };
}

/** Returns what the row adds to its name: its largest parts, as the program prints them. */
function partWords(json: Json, group: string): string {
  return json
    .list('outside')
    .filter((row) => row.text('group') === group)
    .slice(0, PARTS_SHOWN)
    .map((row) => `${row.text('name')} ${formatBytes(row.number('bytes'))}`)
    .join(', ');
}

/** Returns the blocks that make free memory useless, if that is why the allocation failed. */
function pinned(json: Json, at: Link): Section[] {
  const pins = json.at('pins');
  if (json.text('verdict') !== 'fragmentation' || pins.isNull()) return [];
  return [pinRows(pins.list('stacks'), `${pinWords(pins)} of the free memory`, { ...at, view: 'segments' })];
}

function byCategory(json: Json, at: Link): Section {
  return {
    title: 'What was live, by category',
    place: 'beside',
    note: '',
    columns: [named('Category'), numbers('Bytes'), numbers('Blocks'), named('Confidence')],
    rows: json
      .at('live')
      .list('categories')
      .map((row) => {
        const category = words(row.text('category'));
        const link: Link = { ...at, category: row.text('category'), steps: STEPS_BEFORE };
        return [text(category, link), bytes(row.number('bytes'), link), text(formatCount(row.number('count')), link), text(row.text('confidence'))];
      }),
  };
}

function byStack(json: Json, at: Link): Section {
  return {
    title: 'What was live, by stack',
    place: 'wide',
    note: '',
    columns: [named('Stack'), numbers('Bytes'), numbers('Blocks'), named('Category')],
    rows: json
      .at('live')
      .list('stacks')
      .map((row) => {
        const link = stackLink(at, row.text('id'));
        return [
          text(row.text('label'), link),
          bytes(row.number('bytes'), link),
          text(formatCount(row.number('count')), link),
          text(words(row.text('category'))),
        ];
      }),
  };
}

function advice(title: string, rows: readonly Json[]): Section {
  return {
    title,
    place: 'under',
    note: '',
    columns: [named('Action'), numbers('Frees'), named('Enough alone'), named('Why')],
    rows: rows.map((row) => [
      text(row.text('do')),
      { ...bytes(row.number('effect_bytes')), text: `${row.flag('estimate') ? '~ ' : ''}${bytes(row.number('effect_bytes')).text}` },
      text(row.flag('enough') ? 'yes' : row.flag('perhaps_enough') ? 'perhaps' : 'no'),
      text(row.text('why')),
    ]),
  };
}
