// What is free in segments, why it cannot be used, and which blocks pin it.

import { formatPercent } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import type { Json } from '../../base/json';
import { bytes, deviceName, named, NO_LINK, numbers, stackNumber, stackWords, text, type Link, type Page, type Section } from './page';

const CAUSES: readonly (readonly [string, string])[] = [
  ['releasable', 'in segments without live blocks: empty_cache() releases it'],
  ['pinned', 'next to live blocks: only a request that fits can use it'],
  ['stream', 'in segments of other streams'],
  ['private_pool', 'in private pools of CUDA graphs or of the program'],
  ['awaiting_stream', 'freed, waiting for other streams'],
];
const MAX_SEGMENTS = 100;

export function fragPage(json: Json): Page {
  const devices = json.list('devices');
  const anything = devices.some((device) => device.number('reserved_bytes') > 0);
  return {
    tone: anything ? 'finding' : 'quiet',
    facts: [],
    notes: [],
    sections: devices.flatMap((device) => [splitRows(device), pinRows(device), segmentRows(device)]).filter((section) => section.rows.length > 0),
    progress: null,
  };
}

function momentOf(device: Json): Link {
  return { ...NO_LINK, view: 'segments', device: device.numberOrNull('device'), heap: 'pytorch', t_ns: device.number('t_ns') };
}

function splitRows(device: Json): Section {
  const free = device.number('free_bytes');
  const rounding = device.numberOrNull('rounding_bytes');
  const at = momentOf(device);
  const causes = CAUSES.map(([key, why]) => [key, why, device.at('split').number(key)] as const);
  return {
    title: `${deviceName(device.numberOrNull('device'))}: ${bytes(free).text} of ${bytes(device.number('reserved_bytes')).text} reserved are free`,
    note: `${device.text('at')}, ${formatDuration(at.t_ns ?? 0)}; the largest piece is ${bytes(device.number('largest_free_bytes')).text}.`,
    columns: [named('What is free'), numbers('Bytes'), numbers('Share')],
    rows: [
      ...causes.filter(([, , amount]) => amount > 0).map(([, why, amount]) => [text(why), bytes(amount, at), text(formatPercent(amount, free))]),
      ...(rounding === null ? [] : [[text('in addition: in live blocks, from rounding of sizes'), bytes(rounding, at), text('')]]),
    ],
  };
}

function pinRows(device: Json): Section {
  const at = momentOf(device);
  return {
    title: 'Blocks that keep free memory from being released',
    note: '',
    columns: [named('Stack'), numbers('Free bytes kept'), numbers('Block bytes'), numbers('Blocks'), numbers('Oldest allocated at')],
    rows: device.list('pins').map((pin) => {
      const stack = stackNumber(pin.text('id'));
      const link: Link | null = stack === null ? null : { ...at, view: 'timeline', stack };
      return [
        text(stackWords(pin), link),
        bytes(pin.number('pinned_bytes'), at),
        bytes(pin.number('block_bytes'), link),
        text(String(pin.number('blocks')), link),
        text(formatDuration(pin.number('oldest_t_ns'))),
      ];
    }),
  };
}

function segmentRows(device: Json): Section {
  const at = momentOf(device);
  const segments = device.list('segments').filter((segment) => segment.number('free_bytes') > 0);
  const most = [...segments].sort((a, b) => b.number('free_bytes') - a.number('free_bytes')).slice(0, MAX_SEGMENTS);
  const left = segments.length - most.length;
  return {
    title: 'Segments with the most free memory',
    note: left > 0 ? `${plural(left, 'more segment')} with less.` : '',
    columns: [named('Segment'), numbers('Size'), numbers('Live'), numbers('Free'), numbers('Largest hole'), named('Pool')],
    rows: most.map((segment) => [
      text(`0x${segment.number('address').toString(16)}`, at),
      bytes(segment.number('bytes'), at),
      bytes(segment.number('live_bytes'), at),
      bytes(segment.number('free_bytes'), at),
      bytes(segment.number('largest_free_bytes'), at),
      text(
        [segment.flag('small') ? 'small' : 'large', segment.flag('private') ? 'private' : '', segment.flag('expandable') ? 'expandable' : '']
          .filter((part) => part !== '')
          .join(', '),
      ),
    ]),
  };
}
