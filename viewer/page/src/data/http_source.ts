// Gets answers from the server (viewer/README.md, "Questions over HTTP"). All addresses are
// relative to that of the page, which contains the token. Nothing else is ever requested.

import { activity } from '../base/activity';
import { DataError, type DataSource } from './data_source';
import { PROTOCOL_VERSION } from './protocol';
import type * as p from './protocol';
import { SharedEvents, type Events } from './shared_events';
import { errorOfText } from './text_filter';
import { blockTile, curveTile, decodeSlab, flameTree, passingCurve, predictedCurve } from './slab';

interface Watcher {
  readonly onProgress: (progress: p.Progress) => void;
  readonly onLost: (() => void) | undefined;
}

/** Of a running process there is a message several times a second. */
const SILENT_MS = 10_000;

export class HttpSource implements DataSource {
  private stream: Events | null = null;
  private readonly watchers = new Set<Watcher>();
  private last: p.Progress | null = null;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private readonly windows = new Map<number, number>(); // by file, for live recordings

  constructor(
    private readonly base: string,
    private readonly fetchFrom: typeof fetch = (input, init) => fetch(input, init),
    private readonly openEvents: (url: string) => Events = (url) => new SharedEvents(url),
  ) {}

  async meta(signal?: AbortSignal): Promise<p.Meta> {
    const meta = await this.json('meta', {}, signal);
    const version = isRecord(meta) ? meta['protocol'] : undefined;
    if (version !== PROTOCOL_VERSION) {
      throw new DataError(`The server speaks version ${String(version)}, this page version ${PROTOCOL_VERSION}. Reload the page.`);
    }
    return meta as p.Meta;
  }

  /**
   * Watches the progress. The stream behind it stays open while a page lives, which is how the
   * server knows that. The browser opens it again if it breaks. A tunnel may break without a
   * word, so the silence about a running process is measured too.
   */
  watchProgress(onProgress: (progress: p.Progress) => void, onLost?: () => void): () => void {
    const watcher = { onProgress, onLost };
    this.watchers.add(watcher);
    if (this.last !== null) onProgress(this.last);
    if (this.stream === null) {
      this.stream = this.openEvents(new URL('api/alive', this.base).href);
      this.stream.onmessage = (message) => this.take(JSON.parse(message.data) as p.Progress);
      this.stream.onerror = () => this.lose();
    }
    return () => this.watchers.delete(watcher);
  }

  private take(progress: p.Progress): void {
    this.last = progress;
    clearTimeout(this.silence);
    const isRunning = progress.files.some(({ live }) => live !== undefined && live.state !== 'ended');
    if (isRunning) this.silence = setTimeout(() => this.lose(), SILENT_MS);
    for (const { onProgress } of this.watchers) onProgress(progress);
  }
  private lose(): void {
    for (const { onLost } of this.watchers) onLost?.();
  }

  async curve(window: p.Window, signal?: AbortSignal): Promise<p.CurveTile> {
    return curveTile(decodeSlab(await this.bytes('curve', { ...window }, signal)), window);
  }
  async passing(query: p.PassingQuery, signal?: AbortSignal): Promise<p.PassingCurve> {
    return passingCurve(decodeSlab(await this.bytes('passing', { ...query }, signal)), query);
  }
  async predicted(query: p.PredictedQuery, signal?: AbortSignal): Promise<p.PredictedCurve> {
    return predictedCurve(decodeSlab(await this.bytes('predicted', { ...query }, signal)), query);
  }
  async blocks(query: p.BlockQuery, signal?: AbortSignal): Promise<p.BlockTile> {
    return blockTile(decodeSlab(await this.bytes('blocks', { ...query }, signal)), query);
  }
  async flame(query: p.FlameQuery, signal?: AbortSignal): Promise<p.FlameTree> {
    return flameTree(decodeSlab(await this.bytes('flame', { ...query }, signal)));
  }
  async block(file: number, row: number, signal?: AbortSignal): Promise<p.BlockDetails> {
    return (await this.json('block', { file, row }, signal)) as p.BlockDetails;
  }
  async stacks(file: number, ids: readonly number[], signal?: AbortSignal): Promise<readonly p.StackInfo[]> {
    // In batches, because the length of an address is limited.
    const result: p.StackInfo[] = [];
    for (let at = 0; at < ids.length; at += STACKS_A_TIME) {
      const part = ids.slice(at, at + STACKS_A_TIME);
      result.push(...((await this.json('stacks', { file, ids: part.join(',') }, signal)) as readonly p.StackInfo[]));
    }
    return result;
  }
  async source(file: number, path: string, line: number, signal?: AbortSignal): Promise<p.SourceText> {
    return (await this.json('source', { file, path, line }, signal)) as p.SourceText;
  }
  async table(query: p.TableQuery, signal?: AbortSignal): Promise<p.Table> {
    return (await this.json('table', { ...query }, signal)) as p.Table;
  }
  async range(query: p.RangeQuery, signal?: AbortSignal): Promise<p.RangeTable> {
    return (await this.json('range', { ...query }, signal)) as p.RangeTable;
  }
  async segments(file: number, lane: number, event: number, signal?: AbortSignal): Promise<p.Segments> {
    return (await this.json('segments', { file, lane, event }, signal)) as p.Segments;
  }
  async events(query: p.EventsQuery, signal?: AbortSignal): Promise<p.EventPage> {
    return (await this.json('events', { ...query }, signal)) as p.EventPage;
  }
  async answer(file: number, name: p.AnswerName, signal?: AbortSignal): Promise<p.Answer> {
    return (await this.json('answer', { file, name }, signal)) as p.Answer;
  }
  async compare(file: number, other: number, signal?: AbortSignal): Promise<p.Compare> {
    return (await this.json('compare', { file, other }, signal)) as p.Compare;
  }
  async ranks(signal?: AbortSignal): Promise<p.Ranks> {
    return (await this.json('ranks', {}, signal)) as p.Ranks;
  }
  async load(file: number): Promise<void> {
    await this.json('load', { file });
  }
  async find(scope: p.Scope, after: number, limit: number, signal?: AbortSignal): Promise<p.Found> {
    return (await this.json('find', { ...scope, after, limit }, signal)) as p.Found;
  }

  useWindows(meta: p.Meta): void {
    for (const { file, live } of meta.files) if (live !== undefined) this.windows.set(file, live.window);
  }
  async moved(file: number, from: number, to: number, row: number): Promise<number> {
    return ((await (await this.ask('moved', { file, from, to, row })).json()) as p.Moved).row;
  }

  private json(name: string, parameters: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<unknown> {
    return activity.track(this.ask(name, this.inWindow(parameters), signal).then((response) => response.json()));
  }
  private bytes(name: string, parameters: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<ArrayBuffer> {
    return activity.track(this.ask(name, this.inWindow(parameters), signal).then((response) => response.arrayBuffer()));
  }

  private inWindow(parameters: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { other } = parameters;
    const meant = this.withWindow(parameters);
    return isRecord(other) ? { ...meant, other: this.withWindow(other) } : meant;
  }
  private withWindow(place: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { file } = place;
    const window = typeof file === 'number' ? this.windows.get(file) : undefined;
    return window === undefined ? place : { ...place, window };
  }

  private async ask(name: string, parameters: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<Response> {
    // The server would refuse it.
    const invalid = errorOfFilter(parameters['filter']);
    if (invalid !== '') throw new DataError(invalid);
    const url = new URL(`api/${name}${queryString(parameters)}`, this.base);
    let response: Response;
    try {
      response = await this.fetchFrom(url, signal === undefined ? {} : { signal });
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') throw error;
      throw new DataError('The server does not answer. gpumemtrace view has probably ended. Start it again and open the address that it prints.');
    }
    if (response.ok) return response;
    throw new DataError(await sentenceOf(response));
  }
}

const STACKS_A_TIME = 500;

function errorOfFilter(filter: unknown): string {
  const text = isRecord(filter) ? filter['text'] : undefined;
  return typeof text === 'string' ? errorOfText(text) : '';
}

/**
 * Returns '?file=0&text=x&other_lane=1': flattens nested objects, writes arrays as JSON, and omits
 * what is null or empty.
 */
export function queryString(parameters: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (Array.isArray(value)) append(query, { [name]: value.length === 0 ? null : JSON.stringify(value) }, '');
    else if (name === 'filter' && isRecord(value)) append(query, value, '');
    else if (isRecord(value)) append(query, value, `${name}_`);
    else append(query, { [name]: value }, '');
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

function append(query: URLSearchParams, values: Readonly<Record<string, unknown>>, prefix: string): void {
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === '') continue;
    if (isRecord(value)) append(query, value, `${prefix}${name}_`);
    else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') query.set(prefix + name, String(value));
  }
}

async function sentenceOf(response: Response): Promise<string> {
  try {
    const body: unknown = await response.json();
    if (isRecord(body) && typeof body['error'] === 'string' && body['error'] !== '') return body['error'];
  } catch {
    // Not JSON: only the status is known.
  }
  return `The server answered ${response.status} to that question.`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
