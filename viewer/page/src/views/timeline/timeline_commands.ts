// The key commands of the timeline, in addition to those of the page.

import { formatBytes } from '../../base/format_bytes';
import { midpointOf } from '../../data/columns';
import { NO_ROW, type Counted, type CurveTile } from '../../data/protocol';
import type { Command } from '../../state/commands';
import { rangeWords, swappedRanges, withoutRangeA, withRangeA } from '../../state/breakdown_range';
import type { Range } from '../../state/navigator';
import { cursorEvent, fileOf } from '../../state/scope';
import type { ColorBy, State } from '../../state/state';
import type { ViewProps } from '../view';
import { COLORINGS, lackOf } from './coloring';
import { topOf } from './fitted_top';
import { clampBand, zoomBytes } from './pointer';
import type { Shown, TimelineCanvas } from './timeline_canvas';

function mostIn({ window, series }: CurveTile, name: Counted, range: Range): number {
  const of = series.get(name);
  let most = 0;
  for (let c = 0; of !== undefined && c < window.columns; ++c) {
    const position = midpointOf(window, c);
    if (position >= range.from && position <= range.to && of.max[c]! > most) most = of.max[c]!;
  }
  return most;
}

/** Returns the next colours that the recording has. */
function nextColoring(state: State): ColorBy {
  const file = fileOf(state);
  const all = COLORINGS.map(([by]) => by).filter((by) => by === state.colorBy || file === null || lackOf(by, file) === '');
  return all[(all.indexOf(state.colorBy) + 1) % all.length]!;
}

export function timelineCommands(props: Pick<ViewProps, 'store' | 'navigator' | 'announce'>, timeline: TimelineCanvas, shown: () => Shown | null): Command[] {
  const { store, navigator, announce } = props;
  const group = 'Timeline';
  const middle = (): number => {
    const { low, high } = timeline.view();
    return (low + high) / 2;
  };
  const climb = (share: number): void => {
    const { low, high } = timeline.view();
    const by = share * (high - low);
    store.update({ band: clampBand({ low: low + by, high: high + by }, timeline.top(store.get())) });
  };
  // Moves up or down through the blocks that are live at the cursor.
  const nextBlock = (by: 1 | -1): void => {
    const picture = shown()?.picture;
    const position = navigator.positionOf(cursorEvent(store.get()));
    if (picture === undefined || position === null) return;
    const rows = timeline.itemsAt(position).map((item) => picture.blocks.row[item]!).filter((row) => row !== NO_ROW);
    if (rows.length === 0) return;
    const { selection } = store.get();
    const at = selection.kind === 'block' ? rows.indexOf(selection.row) : -1;
    const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
    store.update({ selection: { kind: 'block', row: rows[next]! } });
    const size = picture.blocks.size[picture.blocks.row.indexOf(rows[next]!)]!;
    announce(`Block ${next + 1} of ${rows.length} at the cursor: ${formatBytes(size)}`);
  };
  return [
    { id: 'timeline.layout', title: 'Timeline: stacked or by address', group, hotkeys: ['L'], run: () => store.update((old) => ({ layout: old.layout === 'stacked' ? 'address' : 'stacked', band: null })) },
    { id: 'timeline.color', title: 'Timeline: next colouring', group, hotkeys: ['C'], run: () => store.update((old) => ({ colorBy: nextColoring(old) })) },
    { id: 'timeline.up', title: 'Timeline: block above, at the cursor', group, hotkeys: ['K', ']'], run: () => nextBlock(1) },
    { id: 'timeline.down', title: 'Timeline: block below, at the cursor', group, hotkeys: ['J', '['], run: () => nextBlock(-1) },
    { id: 'timeline.bytes_in', title: 'Timeline: zoom in on bytes', group, hotkeys: ['Shift+W'], run: () => zoomBytes(timeline, store, 0.7, middle()) },
    { id: 'timeline.bytes_out', title: 'Timeline: zoom out of bytes', group, hotkeys: ['Shift+S'], run: () => zoomBytes(timeline, store, 1 / 0.7, middle()) },
    { id: 'timeline.higher', title: 'Timeline: go up', group, hotkeys: ['Shift+ArrowUp', 'PageUp'], run: () => climb(0.2) },
    { id: 'timeline.lower', title: 'Timeline: go down', group, hotkeys: ['Shift+ArrowDown', 'PageDown'], run: () => climb(-0.2) },
    {
      id: 'timeline.select', title: 'Timeline: select what is shown, for the breakdown', group, hotkeys: ['Shift+Q'],
      run: () => store.update(({ axis, layout, band, rangeEvents, breakdown }) => ({
        selection: { kind: 'range', from: Math.floor(rangeEvents.from), to: Math.ceil(rangeEvents.to), box: band === null ? null : { axis, layout, low: band.low, high: band.high } },
        breakdown: { ...breakdown, open: true },
      })),
    },
    {
      id: 'timeline.range_a', title: 'Timeline: compare the selected range, or what is shown, with another one (make it A)', group, hotkeys: ['Shift+C'],
      run: () => {
        store.update(withRangeA);
        announce(`A is ${rangeWords(store.get().rangeA!)}. Select the range to compare with it`);
      },
    },
    { id: 'timeline.swap_ranges', title: 'Timeline: swap the compared ranges A and B', group, hotkeys: ['Shift+X'], enabled: () => store.get().rangeA !== null, run: () => store.update(swappedRanges) },
    { id: 'timeline.no_range_a', title: 'Timeline: stop comparing with range A', group, hotkeys: [], enabled: () => store.get().rangeA !== null, run: () => store.update(withoutRangeA) },
    {
      id: 'timeline.fit_bytes', title: 'Timeline: fit bytes to the shown range', group, hotkeys: ['G'],
      enabled: () => store.get().layout === 'stacked',
      run: () => {
        const { range } = store.get();
        const curve = shown()?.picture.curve;
        if (curve === undefined) return;
        const high = topOf({ peak_bytes: mostIn(curve, 'live', range), peak_reserved_bytes: mostIn(curve, 'reserved', range) });
        store.update({ band: clampBand({ low: 0, high }, timeline.top(store.get())) });
      },
    },
  ];
}
