// The largest blocks of the picture as a table: the content of the canvas for screen readers and
// the keyboard.

import { words } from '../../base/words';
import { formatBytes, formatCount } from '../../base/format_bytes';
import { labelOf } from '../../data/stack_cache';
import { NO_ROW, type FileMeta, type StackInfo } from '../../data/protocol';
import type { State } from '../../state/state';
import type { Store } from '../../state/store';
import { axisWords } from './draw_plot';
import type { Picture } from './tiles';

const ROWS = 25;

/** Returns the items of the largest blocks in a range of the axis, largest first. */
export function largestItems({ blocks }: Picture, from: number, to: number, count: number): number[] {
  const shown: number[] = [];
  for (let i = 0; i < blocks.row.length; ++i) {
    if (blocks.row[i] !== NO_ROW && blocks.start[i]! < to && blocks.end[i]! > from) shown.push(i);
  }
  return shown.sort((a, b) => blocks.size[b]! - blocks.size[a]!).slice(0, count);
}

/**
 * Returns the item of the largest block, or null if none is shown. Takes a single pass, because
 * tiles come often.
 */
export function largestItem({ blocks }: Picture): number | null {
  let largest: number | null = null;
  for (let i = 0; i < blocks.row.length; ++i) {
    if (blocks.row[i] !== NO_ROW && (largest === null || blocks.size[i]! > blocks.size[largest]!)) largest = i;
  }
  return largest;
}

interface ShownTableProps {
  readonly picture: Picture;
  readonly file: FileMeta;
  readonly state: State;
  readonly store: Store;
  readonly stackOf: (stack: number) => StackInfo | null;
  readonly filter: string | null; // the matching memory in words; '' : not known yet; null: no filter
}

export function ShownTable({ picture, file, state, store, stackOf, filter }: ShownTableProps) {
  const { blocks, subject } = picture;
  const { from, to } = state.range;
  const resolution = (to - from) / 1000;
  const largest = largestItems(picture, from, to, ROWS);
  return (
    <table class="plain-table">
      <caption>
        The {formatCount(largest.length)} largest blocks in the shown range; {formatCount(blocks.hidden)} more blocks are too small or too short to be shown individually.
        {filter !== null && filter !== '' && ` Filter: ${filter}.`}
      </caption>
      <thead>
        <tr><th scope="col">Size</th><th scope="col">Where</th><th scope="col">Category</th><th scope="col">From</th><th scope="col">Until</th></tr>
      </thead>
      <tbody>
        {largest.map((item) => (
          <tr key={blocks.row[item]} aria-selected={state.selection.kind === 'block' && state.selection.row === blocks.row[item]}>
            <td>
              <button type="button" onClick={() => store.update({ selection: { kind: 'block', row: blocks.row[item]! } })}>
                {formatBytes(blocks.size[item]!)}
              </button>
            </td>
            <td>{labelOf(stackOf, blocks.stack[item]!, blocks.forward_stack[item]!) ?? ''}</td>
            <td>{words(file.categories[blocks.category[item]!] ?? 'unknown')}</td>
            <td>{axisWords(subject.axis, blocks.start[item]!, resolution)}</td>
            <td>{blocks.end[item] === Infinity ? 'never freed' : axisWords(subject.axis, blocks.end[item]!, resolution)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
