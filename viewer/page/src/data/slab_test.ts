import { describe, expect, it } from 'vitest';
import { Random } from '../testing/random';
import { forEachSeed } from '../testing/seeds';
import { DataError } from './data_source';
import type { BlockQuery, Filter, Window } from './protocol';
import { blockTile, curveTile, decodeSlab, flameTree, passingCurve, predictedCurve, type Column } from './slab';
import { encodeSlab } from '../testing/slab_writer';

const WINDOW: Window = { file: 0, lane: 0, axis: 'time', from: 0, to: 10, columns: 2 };
const NO_FILTER: Filter = { text: '', category: '', stack: null, forward_stack: null, key: null, stream: '', thread: '', min_size: null, max_size: null };
const QUERY: BlockQuery = { ...WINDOW, layout: 'stacked', low: 0, high: 100, rows: 10 };

function blocks(change: Record<string, Column> = {}, fields: Record<string, unknown> = { hidden: 3, spaces: [] }): ArrayBuffer {
  return encodeSlab('blocks', fields, new Map(Object.entries({
    row: Uint32Array.of(7), start: Float64Array.of(1), end: Float64Array.of(Infinity), first: Uint16Array.of(0), last: Uint16Array.of(1), size: Float64Array.of(64),
    place: Float64Array.of(0), stack: Uint32Array.of(2), forward_stack: Uint32Array.of(0), key: Uint32Array.of(5), category: Uint8Array.of(1),
    stream: Uint16Array.of(0), thread: Uint16Array.of(0), role: Uint8Array.of(0), dtype: Uint16Array.of(0), flags: Uint8Array.of(4), run_begin: Uint32Array.of(0, 1),
    run_column: Uint16Array.of(1), run_bytes: Float64Array.of(9), ...change,
  })));
}

describe('a slab', () => {
  it('is decoded as it was encoded, including arrays of odd length', () => {
    const arrays = new Map<string, Column>([['a', Uint8Array.of(1, 2, 3)], ['b', Float64Array.of(-0.5, NaN)], ['c', Uint16Array.of(9)]]);
    const slab = decodeSlab(encodeSlab('x', { y: 'ü' }, arrays));
    expect(slab.fields).toEqual({ y: 'ü' });
    expect(slab.arrays).toEqual(arrays);
  });
  it('of another version is rejected with advice', () => {
    const buffer = encodeSlab('x', {}, new Map());
    new DataView(buffer).setUint16(4, 2, true);
    expect(() => decodeSlab(buffer)).toThrow(/version 2.*Reload/);
  });
  it('that is truncated anywhere is rejected', () => {
    const whole = blocks();
    for (let size = 0; size < whole.byteLength - 8; ++size) {
      expect(() => blockTile(decodeSlab(whole.slice(0, size)), QUERY)).toThrow(DataError);
    }
  });
  it('with flipped bytes is decoded or rejected with a DataError', () => {
    forEachSeed([1], (seed) => {
      const random = new Random(seed);
      for (let round = 0; round < 3000; ++round) {
        const buffer = blocks();
        const bytes = new Uint8Array(buffer);
        for (let i = 0; i <= random.below(3); ++i) bytes[random.below(bytes.length)] = random.below(256);
        try {
          blockTile(decodeSlab(buffer), QUERY);
        } catch (error) {
          expect(error).toBeInstanceOf(DataError);
        }
      }
    });
  });
});

describe('a tile of blocks', () => {
  it('has its columns', () => {
    const tile = blockTile(decodeSlab(blocks()), QUERY);
    expect([tile.row[0], tile.end[0], tile.run_bytes[0], tile.hidden]).toEqual([7, Infinity, 9, 3]);
  });
  it('has lives without an end if the end is null', () => {
    const spaces = [{ place: 0, size: 4, address: '0x10', label: 'large', lives: [[1, null]] }];
    expect(blockTile(decodeSlab(blocks({}, { hidden: 0, spaces })), QUERY).spaces[0]!.lives).toEqual([[1, Infinity]]);
  });
  it('with a column of another length or type is rejected', () => {
    expect(() => blockTile(decodeSlab(blocks({ size: Float64Array.of(1, 2) })), QUERY)).toThrow(/size has 2 entries/);
    expect(() => blockTile(decodeSlab(blocks({ size: Uint8Array.of(1) })), QUERY)).toThrow(/lacks size/);
    expect(() => blockTile(decodeSlab(blocks({ run_begin: Uint32Array.of(2, 1) })), QUERY)).toThrow(/backwards/);
    expect(() => blockTile(decodeSlab(blocks({ last: Uint16Array.of(1 + QUERY.columns) })), QUERY)).toThrow(/columns do not fit/);
  });
});

describe('a curve', () => {
  const series = { 'live.min': Float64Array.of(1, 2), 'live.max': Float64Array.of(3, 4), 'live.mid': Float64Array.of(2, 3) };
  const curve = (change: Record<string, Column>): ArrayBuffer =>
    encodeSlab('curve', {}, new Map(Object.entries({ event: Uint32Array.of(1, 2), peak: Uint32Array.of(1, 2), ns: Float64Array.of(5, 6), ...series, ...change })));
  it('has the series that are present', () => {
    const tile = curveTile(decodeSlab(curve({})), WINDOW);
    expect([...tile.series.keys()]).toEqual(['live']);
    expect(tile.categories.length).toBe(0);
  });
  it('has samples with their times', () => {
    const samples = { 'process_used.value': Float64Array.of(NaN, 7), 'process_used.ns': Float64Array.of(NaN, 3) };
    const tile = curveTile(decodeSlab(curve(samples)), WINDOW);
    expect([...tile.samples]).toEqual([['process_used', { value: samples['process_used.value'], ns: samples['process_used.ns'] }]]);
    expect(() => curveTile(decodeSlab(curve({ ...samples, 'process_used.ns': Float64Array.of(3) })), WINDOW)).toThrow(DataError);
  });
  it('has one value per column', () => {
    expect(() => curveTile(decodeSlab(curve({ ns: Float64Array.of(1) })), WINDOW)).toThrow(DataError);
    expect(() => curveTile(decodeSlab(curve({ categories: Float64Array.of(1, 2, 3) })), WINDOW)).toThrow(DataError);
  });
});

describe('a curve of what matches a filter', () => {
  const query = { ...WINDOW, filter: NO_FILTER };
  const passing = (kind: string, live: Column): ArrayBuffer => encodeSlab(kind, {}, new Map([['live', live]]));
  it('has one value per column', () => {
    expect([...passingCurve(decodeSlab(passing('passing', Float64Array.of(5, NaN))), query).live]).toEqual([5, NaN]);
    expect(() => passingCurve(decodeSlab(passing('passing', Float64Array.of(5))), query)).toThrow(DataError);
  });
  it('is not confused with another curve', () => {
    expect(() => passingCurve(decodeSlab(passing('curve', Float64Array.of(5, 6))), query)).toThrow(/of kind curve/);
    expect(() => passingCurve(decodeSlab(passing('passing', Uint32Array.of(5, 6))), query)).toThrow(/lacks live/);
  });
});

describe('a predicted curve', () => {
  const query = { ...WINDOW, settings: 'expandable_segments:True' };
  const predicted = (fields: Record<string, unknown>, reserved: Column): ArrayBuffer =>
    encodeSlab('predicted', { peak_bytes: 7, retries: 2, failure: null, ...fields }, new Map([['reserved', reserved]]));
  it('has one value per column, and what it leads to', () => {
    const curve = predictedCurve(decodeSlab(predicted({}, Float64Array.of(5, NaN))), query);
    expect(curve).toEqual({ query, reserved: Float64Array.of(5, NaN), peak_bytes: 7, retries: 2, failure: null });
    expect(predictedCurve(decodeSlab(predicted({ failure: 3 }, Float64Array.of(5, 6))), query).failure).toBe(3);
  });
  it('without a part is rejected', () => {
    expect(() => predictedCurve(decodeSlab(predicted({}, Float64Array.of(5))), query)).toThrow(DataError);
    expect(() => predictedCurve(decodeSlab(predicted({ failure: 'x' }, Float64Array.of(5, 6))), query)).toThrow(/lacks failure/);
  });
});

describe('a flame graph', () => {
  const flame = (parent: number[], name: number[]): ArrayBuffer =>
    encodeSlab('flame', { names: ['all', 'f'], total: 3 }, new Map<string, Column>([
      ['parent', Uint32Array.from(parent)], ['name', Uint32Array.from(name)],
      ['bytes', new Float64Array(parent.length)], ['blocks', new Float64Array(parent.length)],
    ]));
  it('has parents before children', () => {
    expect(flameTree(decodeSlab(flame([0, 0], [0, 1]))).names).toEqual(['all', 'f']);
    expect(() => flameTree(decodeSlab(flame([0, 1], [0, 1])))).toThrow(/not a tree/);
    expect(() => flameTree(decodeSlab(flame([0, 0], [0, 2])))).toThrow(/not a tree/);
  });
  it('has a category of every node, or of none', () => {
    const tree = (...category: number[]): ArrayBuffer =>
      encodeSlab('flame', { names: ['all', 'f'], total: 3 }, new Map<string, Column>([
        ['parent', Uint32Array.of(0, 0)], ['name', Uint32Array.of(0, 1)], ['bytes', Float64Array.of(3, 3)], ['blocks', Float64Array.of(1, 1)],
        ['category', Uint8Array.from(category)], ['category_bytes', Float64Array.from(category)],
      ]));
    expect(flameTree(decodeSlab(tree(5, 2))).category).toEqual(Uint8Array.of(5, 2));
    expect(flameTree(decodeSlab(tree())).category).toHaveLength(0);
    expect(() => flameTree(decodeSlab(tree(5)))).toThrow(DataError);
  });
});
