// What is free in segments, why it cannot be used, and which blocks pin it.

import { formatBytes, formatCount, formatPercent } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import type { Json } from '../../base/json';
import type { Hue } from '../../render/palette';
import {
  bytes, codeLine, deviceName, line, named, NO_LINK, numbers, EMPTY_PAGE, stackNumber, text, type Card, type Chart, type Link, type Page, type Section,
} from './page';

interface Cause {
  readonly key: string;
  readonly name: string; // as the program prints it
  readonly reclaimable: string;
  readonly hue: Hue;
}
const CAUSES: readonly Cause[] = [
  { key: 'pinned', name: 'pinned by live blocks', reclaimable: 'when those blocks are freed', hue: 'vermilion' },
  { key: 'stream', name: 'in segments of other streams', reclaimable: 'likewise; only those streams can use it', hue: 'amber' },
  { key: 'releasable', name: 'in segments without live blocks', reclaimable: 'by torch.cuda.empty_cache()', hue: 'silver' },
  { key: 'private_pool', name: 'in private pools', reclaimable: 'when their graphs and pools are destroyed', hue: 'plum' },
  { key: 'awaiting_stream', name: 'awaiting other streams', reclaimable: 'when these are done', hue: 'sky' },
];
const MAX_SEGMENTS = 100;
const PINS_TITLE = 'Blocks that keep free memory from being released';

export function fragPage(json: Json): Page {
  const devices = json.list('devices');
  return {
    ...EMPTY_PAGE,
    charts: devices.map(historyChart),
    cards: devices.flatMap(fixCards),
    sections: devices.flatMap((device) => [splitRows(device), pinRows(device.list('pins'), PINS_TITLE, momentOf(device)), varyingRows(device), segmentRows(device)]).filter((section) => section.rows.length > 0),
  };
}

function momentOf(device: Json): Link {
  return { ...NO_LINK, view: 'segments', device: device.numberOrNull('device'), heap: 'pytorch', t_ns: device.number('t_ns') };
}

function historyChart(device: Json): Chart {
  const history = device.list('history');
  return {
    kind: 'layers',
    title: `Reserved and free on ${deviceName(device.numberOrNull('device'))}, by cause`,
    layers: CAUSES.map(({ key, name, hue }) => ({ name, hue, values: history.map((moment) => moment.at('split').number(key)) })),
    moments: history.map((moment) => formatDuration(moment.number('t_ns'))),
  };
}

/** What expandable segments would have changed. */
export interface Expandable {
  readonly claim: string; // as the program prints it
  readonly basis: string; // how the effect was estimated; '' for a replay
  readonly effect: string; // in short; '' if they would not have helped
}

/** `device`: of the answer. Returns null if they could change nothing. */
export function expandableOf(device: Json): Expandable | null {
  const gain = device.number('expandable_bytes');
  if (gain === 0) return null;
  const replayed = device.numberOrNull('expandable_reserved_bytes');
  if (replayed === null) {
    return { claim: `would free up to ${formatBytes(gain)}`, basis: "each stream's free pieces, joined", effect: `~ ${formatBytes(gain)}` };
  }
  const reserved = device.number('reserved_bytes');
  if (replayed >= reserved) return { claim: 'would have reserved no less at that moment, in a replay', basis: '', effect: '' };
  const change = `${formatBytes(replayed)} instead of ${formatBytes(reserved)}`;
  return { claim: `would have reserved ${change} at that moment, in a replay${higherPeak(device)}`, basis: '', effect: `reserves ${change}, in a replay` };
}

function higherPeak(device: Json): string {
  const replayed = device.number('expandable_peak_reserved_bytes');
  const recorded = device.number('recorded_peak_reserved_bytes');
  return replayed > recorded ? `, but more at its peak: ${formatBytes(replayed)} instead of ${formatBytes(recorded)}` : '';
}

function fixCards(device: Json): Card[] {
  const at = momentOf(device);
  const expandable = expandableOf(device);
  const [pin] = device.list('pins');
  return [...(expandable === null ? [] : [expandableCard(expandable, at)]), ...(pin === undefined ? [] : [pinCard(pin, at)])];
}

function expandableCard({ claim, basis, effect }: Expandable, at: Link): Card {
  const setting = 'expandable_segments:True';
  return {
    title: text(`${setting} ${claim}`),
    lines: [
      ...(effect === '' ? [] : [codeLine('Set', `PYTORCH_CUDA_ALLOC_CONF=${setting}`)]),
      ...(basis === '' ? [] : [line('Estimate', text(basis))]),
      line('Over time', text('what would be reserved', { ...NO_LINK, device: at.device, heap: at.heap, whatif: setting })),
    ],
  };
}

// `row`: a pin or a site, with the id of its stack.
function stackLink(row: Json, at: Link): Link | null {
  const stack = stackNumber(row.text('id'));
  return stack === null ? null : { ...at, view: 'timeline', stack, colorBy: 'stack' };
}

function pinCard(pin: Json, at: Link): Card {
  const link = stackLink(pin, at);
  return {
    title: text(pinWords(pin), link),
    lines: [
      line('Where', text(pin.text('label'), link)),
      ...(pin.text('source') === '' ? [] : [codeLine('Source', pin.text('source'))]),
    ],
  };
}

function splitRows(device: Json): Section {
  const free = device.number('free_bytes');
  const rounding = device.numberOrNull('rounding_bytes');
  const stream = device.numberOrNull('requesting_stream');
  const at = momentOf(device);
  const amountOf = (cause: Cause): number => device.at('split').number(cause.key);
  return {
    title: `${deviceName(device.numberOrNull('device'))}: ${bytes(free).text} of ${bytes(device.number('reserved_bytes')).text} reserved are free`,
    note: `At ${device.text('at')} (${formatDuration(at.t_ns ?? 0)}): ${formatBytes(device.number('allocated_bytes'))} live in ${plural(device.list('segments').length, 'segment')}; the largest free piece is ${bytes(device.number('largest_free_bytes')).text}${stream === null ? '' : `; seen from stream 0x${stream.toString(16)}`}.`,
    place: 'beside',
    columns: [named('Free memory'), numbers('Bytes'), numbers('Share'), named('Reclaimable')],
    rows: [
      ...CAUSES.filter((cause) => amountOf(cause) > 0)
        .sort((a, b) => amountOf(b) - amountOf(a))
        .map((cause) => [text(cause.name), bytes(amountOf(cause), at), text(formatPercent(amountOf(cause), free)), text(cause.reclaimable)]),
      ...(rounding === null ? [] : [[text('in live blocks, lost to size rounding'), bytes(rounding, at), text(''), text('')]]),
    ],
  };
}

/** `pins`: as in the answers of `frag` and `oom`. */
export function pinRows(pins: readonly Json[], title: string, at: Link): Section {
  return {
    title,
    note: '',
    place: 'wide',
    columns: [named('Stack'), numbers('Pinned'), numbers('Their size'), numbers('Blocks'), numbers('Oldest allocated at'), named('Source')],
    rows: pins.map((pin) => {
      const link = stackLink(pin, at);
      return [
        text(pin.text('label'), link),
        bytes(pin.number('pinned_bytes'), at),
        bytes(pin.number('block_bytes'), link),
        text(formatCount(pin.number('blocks')), link),
        text(formatDuration(pin.number('oldest_t_ns'))),
        text(pin.text('source')),
      ];
    }),
  };
}

/** Returns "9 blocks of 1.2 MiB in total pin 23.8 MiB". `pins`: a group of pins, or a sum of groups. */
export function pinWords(pins: Json): string {
  const blocks = pins.number('blocks');
  return `${plural(blocks, 'block')} of ${formatBytes(pins.number('block_bytes'))} in total ${blocks === 1 ? 'pins' : 'pin'} ${formatBytes(pins.number('pinned_bytes'))}`;
}

// Less is within what two runs differ by, as in the program's text.
const WORTH_PADDING = 0.1;

function paddingNote(device: Json, sites: number): string {
  const padded = device.at('varying_sizes').numberOrNull('padded_reserved_bytes');
  if (padded === null) return '';
  const reserved = device.number('reserved_bytes');
  const less = padded < reserved * (1 - WORTH_PADDING) ? `${formatBytes(padded)} instead of ${formatBytes(reserved)}, in a replay` : 'hardly less';
  return `Padded to ${sites === 1 ? 'its largest size' : 'their largest sizes'}, these would have reserved ${less}.`;
}

function varyingRows(device: Json): Section {
  const at = momentOf(device);
  const sites = device.at('varying_sizes').list('sites');
  return {
    title: 'Code that requests other sizes in each step',
    note: paddingNote(device, sites.length),
    place: 'wide',
    columns: [named('Stack'), numbers('Requests'), numbers('Sizes'), numbers('Smallest'), numbers('Largest'), numbers('Held'), named('Source')],
    rows: sites.map((site) => {
      const link = stackLink(site, at);
      return [
        text(site.text('label'), link),
        text(formatCount(site.number('requests'))),
        text(formatCount(site.number('sizes'))),
        bytes(site.number('smallest_bytes')),
        bytes(site.number('largest_bytes')),
        bytes(site.number('held_bytes'), link),
        text(site.text('source')),
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
    place: 'wide',
    columns: [named('Segment'), numbers('Size'), numbers('Live'), numbers('Free'), numbers('Largest free piece'), named('Pool')],
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
