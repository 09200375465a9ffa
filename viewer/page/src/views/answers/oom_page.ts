// Why an allocation ran out of memory.

import { words } from '../../base/words';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import type { Json } from '../../base/json';
import {
  bytes,
  deviceName,
  named,
  NO_LINK,
  numbers,
  stackNumber,
  stackWords,
  text,
  type Cell,
  type Link,
  type Page,
  type Section,
} from './page';

export function oomPage(json: Json): Page {
  if (json.text('verdict') === 'none') {
    return { tone: 'quiet', facts: [], notes: json.texts('findings'), sections: [], progress: null };
  }
  const device = json.numberOrNull('device');
  const at: Link = { ...NO_LINK, device, heap: json.text('heap'), t_ns: json.number('t_ns') };
  const step = json.numberOrNull('step');
  const facts: (readonly [string, Cell])[] = [
    ['Verdict', text(words(json.text('verdict')))],
    ['Confidence', text(json.text('confidence'))],
    ['Requested', bytes(json.number('requested_bytes'), { ...at, view: 'segments' })],
    ['By', text(stackWords(json), stackLink(at, json.text('stack')))],
    ['When', text(`${formatDuration(json.number('t_ns'))}${step === null ? '' : `, step ${step}`}`, at)],
    ['Where', text(deviceName(device))],
  ];
  return {
    tone: 'finding',
    facts,
    notes: [...json.texts('findings'), ...failures(json)],
    sections: [whereItWas(json, at), byCategory(json, at), byStack(json, at), advice('What helps', json.list('actions')), advice('What does not help', json.list('not'))].filter(
      (section) => section.rows.length > 0,
    ),
    progress: null,
  };
}

function failures(json: Json): string[] {
  const count = json.number('failures');
  return count > 1 ? [`${plural(count, 'allocation')} failed; this page is about the first that mattered.`] : [];
}

function stackLink(at: Link, id: string): Link | null {
  const stack = stackNumber(id);
  return stack === null ? null : { ...at, stack, view: 'timeline' };
}

function whereItWas(json: Json, at: Link): Section {
  const evidence = json.at('evidence');
  const split = evidence.at('split');
  const rows: [string, number, Link][] = [
    ['in live blocks', evidence.number('live_bytes'), { ...at, view: 'flame' }],
    ['free in segments, can be released', split.number('releasable'), { ...at, view: 'segments' }],
    ['free next to live blocks', split.number('pinned'), { ...at, view: 'segments' }],
    ['free on other streams', split.number('stream'), { ...at, view: 'segments' }],
    ['free in private pools', split.number('private_pool'), { ...at, view: 'segments' }],
    ['freed, waiting for a stream', split.number('awaiting_stream'), { ...at, view: 'segments' }],
    ['outside the framework', evidence.number('outside_bytes'), { ...at, view: 'ledger' }],
    ['other processes', evidence.number('other_processes_bytes'), { ...at, view: 'ledger' }],
    ['system', evidence.number('system_bytes'), { ...at, view: 'ledger' }],
    ['contexts, code and other processes, not distinguished', evidence.number('not_apart_bytes'), { ...at, view: 'ledger' }],
    ['unexplained', evidence.number('unexplained_bytes'), { ...at, view: 'ledger' }],
    ['free, according to the driver', evidence.number('driver_free_bytes'), { ...at, view: 'ledger' }],
  ];
  const largest = evidence.number('largest_free_bytes');
  return {
    title: 'Where the memory was',
    note: `The largest free piece that the request could have used: ${bytes(largest).text}.`,
    columns: [named('What'), numbers('Bytes')],
    rows: rows.filter(([, amount]) => amount !== 0).map(([name, amount, link]) => [text(name), bytes(amount, link)]),
  };
}

function byCategory(json: Json, at: Link): Section {
  return {
    title: 'What was live, by category',
    note: '',
    columns: [named('Category'), numbers('Bytes'), numbers('Blocks'), named('Confidence')],
    rows: json
      .at('live')
      .list('categories')
      .map((row) => {
        const category = words(row.text('category'));
        const link: Link = { ...at, category: row.text('category') };
        return [text(category, link), bytes(row.number('bytes'), link), text(String(row.number('count')), link), text(row.text('confidence'))];
      }),
  };
}

function byStack(json: Json, at: Link): Section {
  return {
    title: 'What was live, by stack',
    note: '',
    columns: [named('Stack'), numbers('Bytes'), numbers('Blocks'), named('Category')],
    rows: json
      .at('live')
      .list('stacks')
      .map((row) => {
        const link = stackLink(at, row.text('id'));
        return [
          text(stackWords(row), link),
          bytes(row.number('bytes'), link),
          text(String(row.number('count')), link),
          text(words(row.text('category'))),
        ];
      }),
  };
}

function advice(title: string, rows: readonly Json[]): Section {
  return {
    title,
    note: '',
    columns: [named('Action'), numbers('Frees'), named('Enough'), named('Why')],
    rows: rows.map((row) => [
      text(row.text('do')),
      { ...bytes(row.number('effect_bytes')), text: `${row.flag('estimate') ? '~ ' : ''}${bytes(row.number('effect_bytes')).text}` },
      text(row.flag('enough') ? 'yes' : 'no'),
      text(row.text('why')),
    ]),
  };
}
