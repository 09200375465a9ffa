// What would be reserved with other settings of PyTorch's allocator, over what was reserved: which
// settings the timeline offers, and the answer in words.

import { formatBytes, formatCount } from '../../base/format_bytes';
import { plural } from '../../base/plural';
import { columnAt } from '../../data/columns';
import type { DataSource } from '../../data/data_source';
import type { FileMeta, LaneMeta, PredictedCurve } from '../../data/protocol';
import { isCoarse } from '../../state/live';
import type { State } from '../../state/state';
import { PictureCurve, type Pictured } from './picture_curve';

/** A standalone file has the predictions for these (viewer/html/predictions.cc). */
const SETTINGS = ['expandable_segments:True', 'max_split_size_mb:128', 'roundup_power2_divisions:8'] as const;

type Subject = Pick<State, 'layout' | 'whatif'>;
type Source = Pick<DataSource, 'predicted'>;

/** Returns why nothing can be predicted, in words; '' if it can. */
export function lackOfPrediction({ layout }: Subject, { live }: FileMeta, { heap, series }: LaneMeta): string {
  if (heap !== 'pytorch' || !series.includes('reserved')) return "only for PyTorch's blocks";
  if (live !== undefined) return 'not while it runs';
  return layout === 'stacked' ? '' : 'only if stacked';
}

/** Returns the options of a Choice: values, titles, and why they cannot be chosen. */
export function predictionOptions({ whatif }: Subject, lack: string): readonly (readonly [string, string, string?])[] {
  const offered: readonly string[] = SETTINGS;
  const settings = whatif === '' || offered.includes(whatif) ? offered : [...offered, whatif];
  return [['', 'as recorded'], ...settings.map((each) => [each, each, lack] as const)];
}

export class Prediction {
  private readonly curve: PictureCurve<string, PredictedCurve>;

  constructor(source: Source, onChange: () => void) {
    this.curve = new PictureCurve((window, settings, signal) => source.predicted({ ...window, settings }, signal), onChange);
  }

  get failure(): string {
    return this.curve.failure;
  }

  /** Returns null if nothing is to be predicted, or it is not known yet. */
  look(picture: Pictured, state: Subject, file: FileMeta, lane: LaneMeta): PredictedCurve | null {
    const isAsked = state.whatif !== '' && !isCoarse(picture.subject.stage) && lackOfPrediction(state, file, lane) === '';
    return this.curve.look(picture, isAsked ? state.whatif : null);
  }

  stop(): void {
    this.curve.stop();
  }
}

/** Returns 'would reserve 1.62 GiB at the peak instead of 2.10 GiB'. */
export function predictionWords({ peak_bytes: peak, retries, failure }: PredictedCurve, { peak_reserved_bytes: recorded }: Pick<LaneMeta, 'peak_reserved_bytes'>): string {
  const again = retries === 0 ? '' : `, ${plural(retries, 'retry', 'retries')}`;
  if (failure !== null) return `would run out of memory at event ${formatCount(failure)}, with ${formatBytes(peak)} reserved${again}`;
  const instead = recorded === null ? '' : peak === recorded ? ', as recorded' : ` instead of ${formatBytes(recorded)}`;
  return `would reserve ${formatBytes(peak)} at the peak${instead}${again}`;
}

/** Describes the column at a position: 'would be reserved: 1.50 GiB'. */
export function predictedAt(predicted: PredictedCurve | null, position: number): string[] {
  if (predicted === null) return [];
  const bytes = predicted.reserved[columnAt(predicted.query, position)]!;
  return Number.isNaN(bytes) ? [] : [`${predicted.query.settings} would reserve ${formatBytes(bytes)}`];
}
