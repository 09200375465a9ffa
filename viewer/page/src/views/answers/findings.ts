// What each answer says about the recording in one sentence, and how bad that is: for the overview
// and for the tabs.

import { formatBytes } from '../../base/format_bytes';
import { Json } from '../../base/json';
import type { Answer, AnswerName, FileMeta } from '../../data/protocol';
import type { ViewName } from '../../state/state';
import { expandableOf } from './frag_page';
import { suspectLink } from './leaks_page';
import { NO_LINK, type Link } from './page';

/** bad: something is wrong. unsure: something may be. calm: nothing is wrong. */
export type Mood = 'bad' | 'unsure' | 'calm';

export interface Finding {
  readonly name: AnswerName;
  readonly view: ViewName; // the page of the answer
  readonly mood: Mood;
  readonly sentence: string; // the first line that the program prints
  readonly count: number; // of what is wrong: failures, leaks; 0 if it cannot be counted
  readonly fix: string; // the first thing that helps; ''
  readonly moment: Link | null; // where the timeline shows it
}

/** Shares from which on memory is a finding. docs/viewer.md names them. */
const SHARE_OF_RESERVED = 0.1; // free, and empty_cache() would not release it
const SHARE_OF_USED = 0.1; // this much of the driver's figure outside the framework, in other processes, or unexplained is worth a look
const SHARE_OF_DEVICE = 0.01; // less does no harm

const STEPS_TO_FAILURE = 3;
const STEPS_OF_LEAK = 10;

export const JUDGED: readonly AnswerName[] = ['oom', 'leaks', 'frag', 'ledger'];

type Judgement = Omit<Finding, 'name' | 'view' | 'sentence'>;
const CALM: Judgement = { mood: 'calm', count: 0, fix: '', moment: null };

/** What a finding needs to know of the recording. */
export type JudgedFile = Pick<FileMeta, 'end_ns' | 'lanes' | 'steps' | 'ooms'>;

/**
 * Returns null for an answer that judges nothing. `oom`: the answer why memory ran out, if it is
 * known. What it blames is bad, even if it is too little to be a finding of its own.
 */
export function findingOf(answer: Answer, file: JudgedFile | null, oom?: Answer): Finding | null {
  const { name } = answer;
  const judge = JUDGES[name];
  if (judge === undefined || file === null) return null;
  const finding: Finding = { name, view: name as ViewName, sentence: answer.headline, ...judge(new Json(answer.json), file) };
  const isBlamed = name === 'frag' && oom !== undefined && new Json(oom.json).text('verdict') === 'fragmentation';
  return isBlamed ? { ...finding, mood: 'bad', sentence: `The reason why memory ran out. ${answer.headline}` } : finding;
}

/** Returns the memory of a device, null if it is not known. */
export function capacityOf(file: Pick<FileMeta, 'lanes'> | null, device: number | null): number | null {
  return file?.lanes.find((lane) => lane.device === (device ?? -1))?.capacity_bytes ?? null;
}

const JUDGES: Readonly<Partial<Record<AnswerName, (json: Json, file: JudgedFile) => Judgement>>> = {
  oom: judgeFailure,
  leaks: judgeLeaks,
  frag: judgeFragmentation,
  ledger: judgeLedger,
};

function judgeFailure(json: Json): Judgement {
  const evidence = json.at('evidence');
  const verdict = json.text('verdict');
  if (verdict === 'unknown') return { ...CALM, mood: 'unsure' };
  if (verdict === '' || verdict === 'none') return evidence.number('retries') > 0 ? { ...CALM, mood: 'unsure' } : CALM;
  const at = { ...NO_LINK, device: json.numberOrNull('device'), heap: json.text('heap'), t_ns: json.number('t_ns') };
  return {
    mood: 'bad',
    count: Math.max(1, json.number('failures')),
    fix: actionWords(json.list('actions')[0]),
    moment: { ...at, steps: STEPS_TO_FAILURE },
  };
}

function actionWords(action: Json | undefined): string {
  if (action === undefined) return '';
  const effect = `${action.flag('estimate') ? '~ ' : ''}${formatBytes(action.number('effect_bytes'))}`;
  const suffices = action.flag('enough') ? '' : action.flag('perhaps_enough') ? ', perhaps enough' : ', not enough alone';
  return `${action.text('do')} (${effect}${suffices})`;
}

function judgeLeaks(json: Json, file: JudgedFile): Judgement {
  const suspects = json.list('suspects');
  const [first] = suspects;
  if (first === undefined) {
    const isRising = json.flag('enough') && json.list('minima').some((minima) => minima.number('low_bytes_per_cycle') > 0);
    return { ...CALM, mood: !json.flag('enough') || isRising ? 'unsure' : 'calm' };
  }
  const link = suspectLink(first);
  const leaks = suspects.filter((suspect) => suspect.text('tier') !== 'possible').length;
  return {
    mood: leaks > 0 ? 'bad' : 'unsure',
    count: leaks,
    fix: first.text('fix'),
    moment: link === null ? null : { ...link, t_ns: lastHeld(file), steps: STEPS_OF_LEAK },
  };
}

/** Returns when all of a leak is still held: a program that ends frees it after its last step. */
function lastHeld({ steps, ooms, end_ns: end }: JudgedFile): number {
  const last = steps.end_ns.at(-1);
  return last === undefined || ooms.some(({ ns }) => ns > last) ? end : last;
}

function judgeFragmentation(json: Json, file: JudgedFile): Judgement {
  const reserved = json.number('reserved_bytes');
  const kept = json.number('free_bytes') - json.at('split').number('releasable');
  const least = Math.max(SHARE_OF_RESERVED * reserved, SHARE_OF_DEVICE * (capacityOf(file, json.numberOrNull('device')) ?? 0));
  if (reserved === 0 || kept < least) return CALM;
  const effect = expandableOf(json)?.effect ?? '';
  return {
    mood: 'bad',
    count: 0,
    fix: effect === '' ? '' : `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (${effect})`,
    moment: { ...NO_LINK, view: 'segments', device: json.numberOrNull('device'), heap: 'pytorch', t_ns: json.number('t_ns') },
  };
}

function judgeLedger(json: Json): Judgement {
  const used = json.number('driver_used_bytes');
  const rows = json.list('rows');
  const hasFramework = rows.some((row) => row.text('group') === 'reserved');
  // Contexts and code, which every process has, consist of no allocations.
  const outside = rows
    .filter((row) => row.text('group') === 'outside_framework' && row.number('count') > 0)
    .reduce((sum, row) => sum + row.number('bytes'), 0);
  const others = rows.filter((row) => row.text('group') === 'other_process').reduce((sum, row) => sum + row.number('bytes'), 0);
  const least = Math.max(SHARE_OF_USED * used, SHARE_OF_DEVICE * json.number('total_bytes'));
  // What is explained may be meant; only what nothing explains is wrong.
  const isBad = Math.abs(json.number('unexplained_bytes')) >= least;
  const isOpen = (hasFramework && outside >= least) || others >= least;
  if (used === 0 || !(isBad || isOpen)) return CALM;
  return { ...CALM, mood: isBad ? 'bad' : 'unsure', moment: { ...NO_LINK, device: json.numberOrNull('device'), t_ns: json.number('t_ns') } };
}
