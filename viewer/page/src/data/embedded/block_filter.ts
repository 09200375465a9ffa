// Tests which blocks match a Filter of protocol.ts in a standalone file.
// viewer/questions/row_filter.h has the same rules.

import { DataError } from '../data_source';
import type { FileMeta, Filter } from '../protocol';
import { asksAddresses, errorOfText, expressionOf, textsOfFrame, textTest } from '../text_filter';
import type { FileTexts, StackTable } from './file_data';
import { addressOf, sharedText, type Lane } from './lane_data';

export type BlockTest = (block: number) => boolean;

export interface FilterContext {
  readonly meta: FileMeta;
  readonly stacks: StackTable;
  readonly texts: FileTexts;
  readonly lane: Lane;
}

/** Returns a test, or null if every block matches. Throws a DataError if the filter is invalid. */
export function blockTest(filter: Filter, context: FilterContext): BlockTest | null {
  const invalid = errorOfText(filter.text);
  if (invalid !== '') throw new DataError(invalid);
  const ofKind = kindTest(filter, context);
  const address = addressTest(filter.text, context.lane);
  if (ofKind === null && address === null) return null;
  const { kind } = context.lane.blocks;
  const kinds = context.lane.kinds.size.length;
  // There are few kinds, so each is tested once.
  const other = ofKind?.others ?? (() => true);
  const text = ofKind?.text ?? null;
  const fits = new Uint8Array(kinds);
  for (let k = 0; k < kinds; k++) fits[k] = other(k) ? (text === null || text(k) ? YES : ONLY_BY_ADDRESS) : NO;
  return (block) => {
    const fit = fits[kind[block]!]!;
    return fit === YES || (fit === ONLY_BY_ADDRESS && address !== null && address(block));
  };
}

const NO = 0;
const YES = 1;
const ONLY_BY_ADDRESS = 2;

interface KindTest {
  readonly others: (kind: number) => boolean;
  readonly text: ((kind: number) => boolean) | null;
}

function kindTest(filter: Filter, { meta, stacks, texts, lane }: FilterContext): KindTest | null {
  const { kinds } = lane;
  const tests: ((kind: number) => boolean)[] = [];
  if (filter.category !== '') {
    const code = codeOf(meta.categories, filter.category.replaceAll(' ', '_'), filter.category, 'category');
    tests.push((k) => kinds.category[k] === code);
  }
  if (filter.stack !== null) tests.push((k) => kinds.stack[k] === filter.stack);
  if (filter.forward_stack !== null) tests.push((k) => kinds.forward[k] === filter.forward_stack);
  if (filter.key !== null) tests.push((k) => stacks.keyOf(kinds.stack[k]!) === filter.key);
  if (filter.stream !== '') {
    const code = codeOf(meta.streams, filter.stream, filter.stream, 'stream');
    tests.push((k) => kinds.stream[k] === code);
  }
  if (filter.thread !== '') {
    const code = codeOf(meta.threads, filter.thread, filter.thread, 'thread');
    tests.push((k) => kinds.thread[k] === code);
  }
  const { min_size: min, max_size: max } = filter;
  if (min !== null) tests.push((k) => kinds.size[k]! >= min);
  if (max !== null) tests.push((k) => kinds.size[k]! <= max);
  const text = filter.text === '' ? null : textOfKindTest(filter.text, stacks, texts, lane);
  if (tests.length === 0 && text === null) return null;
  return { others: (k) => tests.every((test) => test(k)), text };
}

function codeOf(names: readonly string[], name: string, alias: string, what: string): number {
  const code = names.findIndex((one) => one === name || one === alias);
  if (code < 0) throw new DataError(`'${alias}' is no ${what}`);
  return code;
}

function textOfKindTest(text: string, stacks: StackTable, texts: FileTexts, lane: Lane): (kind: number) => boolean {
  const fits = textTest(text);
  const frames = new Map<number, boolean>();
  const known = new Map<number, boolean>();
  const frameFits = (id: number): boolean => remember(frames, id, () => textsOfFrame(stacks.frame(id)).some(fits));
  const stackFits = (stack: number): boolean => remember(known, stack, () => stacks.frameIds(stack).some(frameFits));
  return (k) => {
    if (stackFits(lane.kinds.stack[k]!) || stackFits(lane.kinds.forward[k]!)) return true;
    const name = lane.kinds.name[k]!;
    if (name !== 0 && fits(texts.names[String(name)] ?? '')) return true;
    const { tensor, alive } = lane.kinds;
    return [sharedText(lane.tensors, tensor[k]!), sharedText(lane.alives, alive[k]!)].some((own) => own !== '' && fits(own));
  };
}

export function remember(known: Map<number, boolean>, id: number, find: () => boolean): boolean {
  let answer = known.get(id);
  if (answer === undefined) known.set(id, (answer = find()));
  return answer;
}

/**
 * Returns a test by address: blocks whose address begins with the digits, or that contain the
 * address.
 */
function addressTest(text: string, lane: Lane): BlockTest | null {
  if (!asksAddresses(text)) return null;
  const expression = expressionOf(text);
  if (expression !== null) return (block) => expression.test(hex(addressOf(lane, block)));
  const needle = text.toLowerCase();
  const address = /^0x[0-9a-f]+$/.test(needle) ? BigInt(needle) : null;
  return (block) => {
    const begin = addressOf(lane, block);
    const size = BigInt(lane.kinds.size[lane.blocks.kind[block]!]!);
    return (address !== null && address >= begin && address - begin < size) || hex(begin).startsWith(needle);
  };
}

export function hex(value: bigint): string {
  return `0x${value.toString(16)}`;
}
