// The overview of a recording, before it becomes elements: made from the answers that are known.

import { formatBytes, formatCount, formatDelta } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { Json } from '../../base/json';
import { plural } from '../../base/plural';
import { words } from '../../base/words';
import type { AnswerName, FileMeta } from '../../data/protocol';
import { hueOfCategory } from '../../render/palette';
import type { Answers } from '../../widgets/use_answers';
import type { BarMark, BarPart } from '../../widgets/stacked_bar';
import { findingOf, JUDGED, type Finding } from '../answers/findings';
import { bytes, deviceName, named, NO_LINK, numbers, text, type Link, type LinkedPart, type Section } from '../answers/page';
import { allocatorsOf } from './allocators';

export interface Overview {
  /** What is wrong. */
  readonly problems: readonly Finding[];
  /** What else was checked: what is open before what is in order. */
  readonly checked: readonly Finding[];
  readonly missing: readonly AnswerName[]; // answers that are not known yet
  /** How much the fullest device has left; null: unknown, or the answer is not known yet. */
  readonly headroom: Headroom | null;
  readonly peaks: readonly Peak[];
}

export interface Headroom {
  readonly device: number;
  readonly bytes: number;
  readonly capacity: number;
  readonly most: number; // ever in use, as far as is known
  readonly basis: string; // what `most` is, in words: 'the peak'
}

/** The peak of a GPU. */
export interface Peak {
  readonly title: string;
  readonly at: Link;
  readonly parts: readonly LinkedPart[];
  readonly marks: readonly BarMark[];
  /** What stays between steps, and what a step adds; empty without steps. */
  readonly stepParts: readonly BarPart[];
  readonly stepWords: Readonly<Record<string, string>>; // of each of these
  readonly phases: Section | null;
  readonly allocators: Section | null;
}

export function overviewOf(answers: Answers, file: FileMeta): Overview {
  const known = JUDGED.flatMap((name) => {
    const answer = answers.of[name];
    const finding = answer === undefined ? null : findingOf(answer, file, answers.of.oom);
    return finding === null ? [] : [finding];
  });
  const report = new Json(answers.of.report?.json);
  const gpus = report.list('devices').filter((device) => device.numberOrNull('index') !== null && device.number('bytes') > 0);
  const all: readonly AnswerName[] = [...JUDGED, 'report'];
  return {
    problems: known.filter((finding) => finding.mood === 'bad'),
    checked: (['unsure', 'calm'] as const).flatMap((mood) => known.filter((finding) => finding.mood === mood)),
    missing: all.filter((name) => answers.of[name] === undefined),
    headroom: headroomOf(gpus, new Json(answers.of.ledger?.json)),
    peaks: gpus.map((device) => peakOf(device, file)),
  };
}

/** The least of all devices. */
function headroomOf(gpus: readonly Json[], ledger: Json): Headroom | null {
  let least: Headroom | null = null;
  for (const gpu of gpus) {
    const capacity = gpu.numberOrNull('total_bytes');
    if (capacity === null) continue;
    const device = gpu.number('index');
    const { bytes: most, basis } = mostInUse(gpu, ledger);
    const room = { device, bytes: Math.max(0, capacity - most), capacity, most, basis };
    if (least === null || room.bytes < least.bytes) least = room;
  }
  return least;
}

/** Returns the largest figure that is known. */
function mostInUse(gpu: Json, ledger: Json): { readonly bytes: number; readonly basis: string } {
  const atPeak = ledger.list('devices').find((device) => device.number('device') === gpu.number('index'));
  const figures = [
    { bytes: gpu.number('peak_bytes'), basis: 'the peak' },
    ...gpu.list('device_use').map((use) => ({ bytes: use.at('fullest').number('used_bytes'), basis: 'the most in use according to the driver' })),
    // The driver may have been asked long before the peak: the ledger adds what was recorded since.
    { bytes: atPeak?.number('driver_used_bytes') ?? 0, basis: 'what the GPU used at the peak' },
  ];
  return figures.reduce((most, figure) => (figure.bytes > most.bytes ? figure : most));
}

function peakOf(device: Json, file: FileMeta): Peak {
  const index = device.numberOrNull('index');
  const at: Link = { ...NO_LINK, device: index, heap: file.lanes.some((lane) => lane.device === index && lane.heap === 'pytorch') ? 'pytorch' : '', t_ns: device.number('t_ns') };
  const capacity = device.numberOrNull('total_bytes');
  const allocated = device.number('allocated_bytes');
  const taken = device.number('peak_bytes');
  const reserved = device.list('heaps').reduce((sum, heap) => sum + heap.number('reserved_bytes'), 0);
  const cached = device.list('categories').filter((use) => use.text('category') === 'cache');
  const used = [...device.list('categories').filter((use) => use.text('category') !== 'cache'), ...cached];
  const profile = device.at('step_profile');
  const [floor, variable] = [profile.number('floor_bytes'), profile.number('variable_bytes')];
  return {
    title: `Peak of ${deviceName(index)}: ${formatBytes(allocated)} allocated at ${formatDuration(device.number('t_ns'))}${taken > allocated ? `; up to ${formatBytes(taken)} taken from the driver` : ''}`,
    at,
    parts: used.map((use) => {
      const category = use.text('category');
      return { name: words(category), bytes: use.number('bytes'), hue: hueOfCategory(category), link: category === 'cache' ? { ...at, view: 'segments' } : { ...at, category } };
    }),
    marks: [
      ...(reserved > 0 ? [{ name: 'reserved', bytes: reserved }] : []),
      ...(capacity === null ? [] : [{ name: 'capacity', bytes: capacity }]),
    ],
    stepParts: profile.isNull()
      ? []
      : [
          { name: 'floor', bytes: floor, hue: 'navy' },
          { name: 'variable', bytes: variable, hue: 'amber' },
        ],
    stepWords: {
      floor: `${formatBytes(floor)}: ${usesWords(profile.list('floor_categories'), [])}`,
      variable: `${formatBytes(variable)}: ${usesWords(profile.list('peak_categories'), profile.list('floor_categories'))}`,
    },
    phases: phasesOf(device, file),
    allocators: allocatorsOf(device, at),
  };
}

const USES = 3;

/** Returns the largest categories; with `below`, by how much they exceed those. */
function usesWords(uses: readonly Json[], below: readonly Json[]): string {
  const change = (use: Json): number => use.number('bytes') - (below.find((each) => each.text('category') === use.text('category'))?.number('bytes') ?? 0);
  return uses
    .map((use) => [words(use.text('category')), change(use)] as const)
    .filter(([, amount]) => amount !== 0)
    .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
    .slice(0, USES)
    .map(([name, amount]) => `${name} ${below.length > 0 ? formatDelta(amount) : formatBytes(amount)}`)
    .join(', ');
}

function phasesOf(device: Json, file: FileMeta): Section | null {
  const steps = device.at('steps');
  const typical = steps.at('typical');
  const phases = typical.at('phases');
  if (phases.isNull()) return null;
  const names = Object.keys(phases.value as object);
  if (names.length === 0) return null;
  const count = steps.number('count');
  return {
    title: `A typical step peaks at ${formatBytes(typical.number('peak_bytes'))} in ${words(typical.text('peak_phase'))} (${formatCount(typical.number('steps_with_peak_phase'))} of ${formatCount(typical.number('steps'))})`,
    note: `${plural(count, 'step')} ${steps.flag('inferred') ? 'inferred from' : 'by'} ${steps.text('source')}; the typical one grows by ${formatDelta(typical.number('growth_bytes'))}.`,
    columns: [named('Phase'), numbers('Duration'), numbers('Peak'), numbers('Change')],
    rows: names.map((name) => {
      const duration = meanDuration(file, name);
      const phase = phases.at(name);
      return [text(words(name)), text(duration === null ? '' : formatDuration(duration)), bytes(phase.number('peak_bytes')), text(formatDelta(phase.number('change_bytes')))];
    }),
  };
}

/** Returns the mean time per step that a phase takes, in ns; null if the recording does not say. */
function meanDuration({ phases, steps }: FileMeta, kind: string): number | null {
  const spans = phases.filter((span) => span.kind === kind && span.depth === 0);
  if (spans.length === 0 || steps.end.length === 0) return null;
  return spans.reduce((sum, span) => sum + span.end_ns - span.begin_ns, 0) / steps.end.length;
}
