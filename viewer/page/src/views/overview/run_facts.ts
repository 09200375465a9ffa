// What was recorded, and how: the facts of a report's "run".

import { formatBytes } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import { Json } from '../../base/json';
import { words } from '../../base/words';
import type { FileMeta } from '../../data/protocol';

export type Fact = readonly [name: string, value: string];

/** `report`: the JSON of the report, null if it is not known yet. */
export function runFacts(file: FileMeta, report: unknown): Fact[] {
  const json = new Json(report);
  const run = json.at('run');
  const steps = file.steps.end.length;
  const facts: Fact[] = [
    ['Command', file.argv.join(' ')],
    ['GPU', gpuWords(json)],
    ['Versions', pairs(run.at('libraries'), (name, value) => `${words(name)} ${value}`)],
    ['Settings', pairs(run.at('settings'), (name, value) => `${name} ${value}`)],
    ['Sources', pairs(run.at('sources'), sourceWords, '; ')],
    ['Recording', run.isNull() ? '' : completeWords(run, file)],
    ['Length', `${formatDuration(file.end_ns)}, ${plural(file.events, 'event')}${steps > 0 ? `, ${plural(steps, 'step')}` : ''}`],
    ['File', file.path],
  ];
  return facts.filter(([, value]) => value !== '');
}

function gpuWords(report: Json): string {
  return report
    .list('devices')
    .filter((device) => device.numberOrNull('index') !== null)
    .map((device) => {
      const total = device.numberOrNull('total_bytes');
      return `${device.text('name') || `GPU ${device.number('index')}`}${total === null ? '' : `, ${formatBytes(total)}`}`;
    })
    .join('; ');
}

function completeWords(run: Json, file: FileMeta): string {
  const imported = run.text('imported_from');
  const origin = imported === '' ? '' : `imported from ${imported}, `;
  const lacks = file.lacks.length;
  return `${origin}${run.flag('complete') ? 'complete' : 'not complete'}${lacks > 0 ? `; ${plural(lacks, 'note')} above` : ''}`;
}

/** 'native stacks: own unwinder', 'nvml on'. */
function sourceWords(name: string, value: string): string {
  return name === 'native_stacks' ? `${words(name)}: ${value} unwinder` : `${words(name)} ${value}`;
}

function pairs(json: Json, wordsOf: (name: string, value: string) => string, separator = ', '): string {
  if (json.isNull()) return '';
  return Object.entries(json.value as Readonly<Record<string, unknown>>)
    .flatMap(([name, value]) => (typeof value === 'string' && value !== '' ? [wordsOf(name, value)] : []))
    .join(separator);
}
