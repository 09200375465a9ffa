// A lane's memory over the whole recording: what is live by category, the line of what is reserved,
// and what the driver reported.

import { formatBytes } from '../../base/format_bytes';
import { words } from '../../base/words';
import { isSampledIn } from '../../data/columns';
import type { CurveTile, FileMeta, LaneMeta } from '../../data/protocol';
import { hueOfCategory } from '../../render/palette';
import { domainOf } from '../../state/navigator';
import { LayersChart, type Layer, type Line } from '../../widgets/layers_chart';
import { keyOf, useQuestion } from '../../widgets/use_question';
import type { ViewProps } from '../view';

const COLUMNS = 240;

interface MemoryChartProps extends Pick<ViewProps, 'source'> {
  readonly title: string;
  readonly file: FileMeta;
  readonly lane: LaneMeta;
  /** Whether the chart is high enough for what the driver reported, of all processes. */
  readonly withDriver: boolean;
}

export function MemoryChart({ title, file, lane, withDriver, source }: MemoryChartProps) {
  const window = { file: file.file, lane: lane.lane, axis: 'time' as const, ...domainOf(file, 'time'), columns: COLUMNS };
  const asked = useQuestion(keyOf(window), (signal) => source.curve(window, signal));
  const curve = asked.answer;
  if (curve === null) return asked.failure === '' ? null : <p class="failed">{asked.failure}</p>;
  const { layers, lines } = memoryOf(curve, file.categories, withDriver);
  return <LayersChart title={title} layers={layers} lines={lines} moments={curve.window} axis="time" />;
}

/** Returns what each column shows at its peak. What is not known is not drawn. */
export function memoryOf({ window, series, samples, categories }: CurveTile, names: readonly string[], withDriver: boolean): { layers: Layer[]; lines: Line[] } {
  const { columns } = window;
  const live = series.get('live')?.max ?? new Float64Array(columns);
  const known = (values: ArrayLike<number>): number[] => Array.from(values, (value, c) => (Number.isNaN(value) || Number.isNaN(live[c]!) ? 0 : value));
  const layers = names
    .slice(0, categories.length / columns)
    .map((name, code): Layer => ({ name: words(name), hue: hueOfCategory(name), values: known(categories.subarray(code * columns, (code + 1) * columns)) }));
  const reserved = series.get('reserved')?.max;
  const driver = withDriver ? samples.get('driver_used') : undefined;
  return {
    layers: layers.length > 0 ? layers : [{ name: 'live', hue: 'grey', values: known(live) }],
    lines: [
      ...(reserved === undefined ? [] : [{ name: `reserved, at most ${formatBytes(mostOf(reserved))}`, values: reserved, isSampled: false }]),
      ...(driver === undefined
        ? []
        : [{ name: 'in use according to the driver, sampled', values: driver.value.map((value, c) => (isSampledIn(driver.ns, c) ? value : NaN)), isSampled: true }]),
    ],
  };
}

function mostOf(values: Float64Array): number {
  return values.reduce((most, value) => (value > most ? value : most), 0); // false for NaN
}
