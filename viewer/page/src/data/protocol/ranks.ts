// The recordings as the ranks of a job, as `gpumemtrace ranks` compares them.

/** `api/ranks`, JSON. Steps are in groups of equal size, because there may be many. */
export interface Ranks {
  readonly headline: string; // which rank differs most, and why; '' if no rank is known
  readonly steps_per_group: number;
  readonly median_peak_bytes: number;
  readonly median_step_peaks: readonly number[]; // by group, over the ranks that took these steps
  readonly rows: readonly RankRow[]; // by rank
  readonly outliers: readonly number[]; // indices of rows; the most different first
  readonly missing: readonly MissingRank[];
  readonly has_more: boolean; // the next answer will know more ranks
}

export interface RankRow {
  readonly file: number;
  readonly name: string; // 'rank 3'
  readonly peak_bytes: number; // on the GPU with its highest peak, as the following
  readonly steps: number;
  readonly step_peaks: readonly number[]; // by group
  readonly differs: boolean;
  readonly causes: readonly string[]; // most bytes first
}

export interface MissingRank {
  readonly file: number;
  readonly why: string; // a sentence
}
