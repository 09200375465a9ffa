// A DataSource over generated recordings: for unit tests, `vite dev` and browser tests without a
// server (`vite build --mode generated`). Not in the shipped page.

import { DataError, type DataSource } from './data_source';
import { blockDetails, flameOf, found, passingOf, segmentsAt, stackInfo, STREAMS, tableOf, THREADS } from './generated/questions';
import { CATEGORIES, makeRecording, MIB, type Recording, type Shape } from './generated/recording';
import { positionOf, runningTotal, selectBlocks, selectCurve } from './generated/select';
import { PROTOCOL_VERSION } from './protocol';
import type * as p from './protocol';

export class GeneratedSource implements DataSource {
  private readonly recordings: readonly Recording[];

  constructor(shapes: readonly Shape[] = [{ seed: 1, steps: 12, layers: 10 }, { seed: 2, steps: 10, layers: 11 }]) {
    this.recordings = shapes.map(makeRecording);
  }

  recording(file: number): Recording {
    const recording = this.recordings[file];
    if (recording === undefined) throw new DataError(`There is no file ${file}.`);
    return recording;
  }

  meta(): Promise<p.Meta> {
    return Promise.resolve({ protocol: PROTOCOL_VERSION, version: '0.0.0', door: 'server', files: this.recordings.map((_, file) => this.fileMeta(file)) });
  }
  watchProgress(onProgress: (progress: p.Progress) => void): () => void {
    onProgress({ files: this.recordings.map((_, file) => ({ file, state: 'ready', what: '', fraction: 1, error: '' })) });
    return () => undefined;
  }
  curve(window: p.Window): Promise<p.CurveTile> {
    return this.answerTo(() => selectCurve(this.recording(window.file), window));
  }
  passing(query: p.PassingQuery): Promise<p.PassingCurve> {
    return this.answerTo(() => passingOf(this.recording(query.file), query));
  }
  blocks(query: p.BlockQuery): Promise<p.BlockTile> {
    return this.answerTo(() => selectBlocks(this.recording(query.file), query));
  }
  block(file: number, row: number): Promise<p.BlockDetails> {
    return this.answerTo(() => {
      if (row >= this.recording(file).blocks.length) throw new DataError(`There is no block ${row}.`);
      return blockDetails(this.recording(file), row);
    });
  }
  stacks(file: number, ids: readonly number[]): Promise<readonly p.StackInfo[]> {
    return this.answerTo(() => ids.map((id) => stackInfo(this.recording(file), id)));
  }
  source(file: number, path: string, line: number): Promise<p.SourceText> {
    return this.answerTo(() => {
      this.recording(file);
      if (!path.endsWith('train.py')) return { path, first: 0, lines: [], note: 'The file is not on this machine.' };
      const first = Math.max(1, line - 3);
      return { path, first, lines: Array.from({ length: 7 }, (_, i) => `    line_${first + i} = work(${first + i})`), note: '' };
    });
  }
  flame(query: p.FlameQuery): Promise<p.FlameTree> {
    return this.answerTo(() => flameOf(this.recording(query.file), query));
  }
  table(query: p.TableQuery): Promise<p.Table> {
    return this.answerTo(() => tableOf(this.recording(query.file), query));
  }
  segments(file: number, _lane: number, event: number): Promise<p.Segments> {
    return this.answerTo(() => segmentsAt(this.recording(file), event));
  }
  answer(file: number, name: p.AnswerName): Promise<p.Answer> {
    return this.answerTo(() => {
      this.recording(file);
      return { name, headline: 'A made-up recording has no answers.', text: 'A made-up recording has no answers.\n', json: {} };
    });
  }
  compare(file: number, other: number): Promise<p.Compare> {
    return this.answerTo(() => {
      const [a, b] = [this.recording(file).steps.begin, this.recording(other).steps.begin];
      return {
        headline: 'Two made-up recordings.', json: {}, aligned_by: 'step',
        steps: a.slice(0, b.length).map((begin, i) => [begin, b[i]!] as const),
      };
    });
  }
  find(scope: p.Scope, after: number, limit: number): Promise<p.Found> {
    return this.answerTo(() => found(this.recording(scope.file), scope, after, limit));
  }

  private async answerTo<T>(answer: () => T): Promise<T> {
    await new Promise((resolve) => setTimeout(resolve, 0)); // asynchronous, like an answer from elsewhere
    return answer();
  }

  private fileMeta(file: number): p.FileMeta {
    const recording = this.recording(file);
    const { steps } = recording;
    const events = recording.times.length;
    const instant = (name: string, event: number): p.InstantMeta => ({ name, event, ns: positionOf(recording, 'time', event) });
    const half = events >> 1;
    return {
      file, name: `made_up_${file + 1}.gmt`, path: `/tmp/made_up_${file + 1}.gmt`, imported_from: '', pid: 101 + file, rank: null,
      argv: ['python', 'train.py'], start_unix_ns: '1770000000000000000', end_ns: recording.endNs, events,
      lanes: [this.lane(file, 0, 'pytorch', 'GPU 0 · PyTorch blocks'), this.lane(file, 1, 'driver', 'GPU 0 · driver memory')],
      categories: CATEGORIES, streams: STREAMS, threads: THREADS, steps,
      phases: steps.begin.flatMap((begin, i) => phasesOf(recording, begin, steps.end[i]!)),
      ranges: [], marks: [instant('epoch 1', Math.floor(events / 3))], snapshots: [instant('exit', events)],
      ooms: [{ ...instant('out of memory', half), device: 0, requested: 3072 * MIB, stack: 3 }],
      retries: [instant('retry', half - 1)], losses: [instant('12 events lost', Math.floor(events * 0.8))],
      lacks: [], omitted: null,
    };
  }

  private lane(file: number, lane: number, heap: string, label: string): p.LaneMeta {
    const recording = this.recording(file);
    const total = runningTotal(recording, lane);
    let peak = 0;
    for (let e = 0; e < total.length; ++e) if (total[e]! > total[peak]!) peak = e;
    return {
      lane, device: 0, heap, label, blocks: recording.blocks.filter((block) => block.lane === lane).length,
      peak_bytes: total[peak]!, peak_event: peak, end_bytes: total[total.length - 1]!, capacity_bytes: 2048 * MIB, has_segments: true,
      series: lane === 0 ? ['live', 'reserved', 'driver_used'] : ['live'],
    };
  }
}

function phasesOf(recording: Recording, begin: number, end: number): p.SpanMeta[] {
  const middle = begin + Math.floor((end - begin) * 0.45);
  const last = begin + Math.floor((end - begin) * 0.95);
  const span = (kind: string, from: number, to: number): p.SpanMeta => ({
    name: kind, kind, begin: from, end: to, begin_ns: positionOf(recording, 'time', from), end_ns: positionOf(recording, 'time', to), depth: 0, thread: 0,
  });
  return [span('forward', begin, middle), span('backward', middle, last), span('optimizer', last, end)];
}
