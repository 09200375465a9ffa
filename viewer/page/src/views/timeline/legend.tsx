// Explains the colours. A click filters by an entry; another click removes the filter.

import { formatBytes } from '../../base/format_bytes';
import type { Filter } from '../../data/protocol';
import type { State } from '../../state/state';
import type { Store } from '../../state/store';
import { SERIES_STYLE } from './draw_plot';
import type { LegendEntry } from './coloring';
import type { Series } from '../../data/protocol';

const LONGEST = 42; // letters, of the name of a call site
// By address, blocks lower than a pixel leave the segment below them visible.
const FREE_BY_ADDRESS = 'free, or too small to draw';

interface LegendProps {
  readonly entries: readonly LegendEntry[];
  readonly series: readonly Series[];
  readonly state: State;
  readonly store: Store;
  readonly predicted: string | null; // in words; '': not known yet; null: nothing is predicted
  readonly hasPending: boolean; // whether a drawn block waits for a stream
  readonly filter: string | null; // the matching memory in words; '' : not known yet; null: no filter
}

export function Legend({ entries, series, state, store, predicted, hasPending, filter }: LegendProps) {
  return (
    <div class="legend" role="group" aria-label="Legend">
      {entries.map((entry, i) => <Entry key={`${i} ${entry.name}`} entry={entry} state={state} store={store} />)}
      {state.colorBy !== 'category' && state.layout === 'stacked' && <span class="swatch-entry"><Swatch color="var(--rest)" /> small or short blocks</span>}
      {state.layout === 'address' && <span class="swatch-entry"><span class="hatched reserved" aria-hidden="true" /> {FREE_BY_ADDRESS}</span>}
      {hasPending && <span class="swatch-entry"><span class="hatched pending" aria-hidden="true" /> waiting for a stream</span>}
      {state.selection.kind === 'stack' && <span class="swatch-entry"><Swatch color="var(--accent)" /> the selected call site</span>}
      {filter !== null && <span class="swatch-entry filter-entry"><Swatch color="var(--accent)" /> filter{filter === '' ? '' : `: ${filter}`}</span>}
      {predicted !== null && <span class="swatch-entry prediction"><Stroke dash="6 3" color="var(--accent)" /> {state.whatif}{predicted === '' ? '' : `: ${predicted}`}</span>}
      <span class="legend-series">
        {shownLines(series, state.layout).map((name) => <span key={name} class="swatch-entry"><Line name={name} /> {SERIES_STYLE[name].name}</span>)}
      </span>
    </div>
  );
}

// By address, reserved memory is drawn as segments.
function shownLines(series: readonly Series[], layout: State['layout']): (keyof typeof SERIES_STYLE)[] {
  return series.filter((name) => name !== 'live').filter((name) => name !== 'reserved' || layout === 'stacked');
}

function Entry({ entry, state, store }: { readonly entry: LegendEntry; readonly state: State; readonly store: Store }) {
  const { change, name, color, bytes } = entry;
  if (change === null) return <span class="swatch-entry"><Swatch color={color} /> {name}</span>;
  const isSet = isIn(change, state.filter);
  const short = shortName(name);
  const toggle = (): void => {
    const unset = Object.fromEntries(Object.keys(change).map((key) => [key, typeof change[key as keyof Filter] === 'string' ? '' : null]));
    store.update((old) => ({ filter: { ...old.filter, ...(isSet ? unset : change) } }));
  };
  return (
    <button type="button" class="swatch-entry" aria-pressed={isSet} title={`${short === name ? '' : `${name}: `}${formatBytes(bytes)} in the shown range`} onClick={toggle}>
      <Swatch color={color} /> {short}
    </button>
  );
}

/** Returns a name without the lines of code in it, and its beginning, if it is too long. */
export function shortName(name: string): string {
  if (name.length <= LONGEST) return name;
  const rest = name.replace(/ \([^()]*\)/g, '');
  return rest.length > LONGEST ? `${rest.slice(0, LONGEST - 1)}…` : rest;
}

function isIn(change: Partial<Filter>, filter: Filter): boolean {
  return Object.entries(change).every(([key, value]) => filter[key as keyof Filter] === value);
}

function Line({ name }: { readonly name: keyof typeof SERIES_STYLE }) {
  const { mark } = SERIES_STYLE[name];
  if (mark === 'line') return <Stroke dash="" color="currentColor" />;
  return (
    <svg class="legend-line" aria-hidden="true" width="20" height="10" viewBox="0 0 20 10" stroke="currentColor">
      {[3, 10, 17].map((x) => <rect key={x} x={x - 2} y="3" width="4" height="4" fill={mark === 'dot' ? 'currentColor' : 'none'} />)}
    </svg>
  );
}

function Stroke({ dash, color }: { readonly dash: string; readonly color: string }) {
  return (
    <svg class="legend-line" aria-hidden="true" width="20" height="10" viewBox="0 0 20 10">
      <line x1="0" y1="5" x2="20" y2="5" stroke-width="1.5" stroke={color} stroke-dasharray={dash} />
    </svg>
  );
}

function Swatch({ color }: { readonly color: string }) {
  return <span class="legend-swatch" aria-hidden="true" style={{ background: color }} />;
}
