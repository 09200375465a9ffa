// The recordings as ranks of a job: which of them differ, and when, as a heat map from which a rank
// opens.

import { useState } from 'preact/hooks';
import { activity } from '../../base/activity';
import { plural } from '../../base/plural';
import type { FileMeta, Ranks } from '../../data/protocol';
import { cssColor } from '../../render/palette';
import { titleOfFile } from '../../state/scope';
import { Answered, Empty } from '../../widgets/states';
import { Unfiltered } from '../../widgets/unfiltered';
import type { View, ViewProps } from '../view';
import { cellWords, percentWords, scaleOf, stepsOf, WHOLE, type Spot } from './heat_map';
import { HeatMapCanvas } from './heat_map_canvas';
import { useRanks } from './use_ranks';

const OUTLIERS_SHOWN = 4;

function RanksView(props: ViewProps) {
  const { state, store } = props;
  const files = state.meta?.files ?? [];
  const isAsked = files.length > 1;
  const asked = useRanks(props, isAsked);
  if (!isAsked) {
    return (
      <section class="view" aria-label="Ranks">
        <h2 class="visually-hidden">Ranks</h2>
        <Empty title="Only one recording is open">
          <p>
            To compare the ranks of a job, open the directory with their recordings: <code>gpumemtrace view out/</code>
          </p>
        </Empty>
      </section>
    );
  }
  return (
    <section class="view ranks-view" aria-label="Ranks">
      <Unfiltered state={state} store={store} words="Ranks show all memory, regardless of the filter." />
      <Answered asked={asked} what="Comparing ranks…">
        {(ranks) => <Compared {...props} ranks={ranks} files={files} />}
      </Answered>
    </section>
  );
}

interface ComparedProps extends ViewProps {
  readonly ranks: Ranks;
  readonly files: readonly FileMeta[];
}

function Compared({ ranks, files, ...props }: ComparedProps) {
  const [chosen, setChosen] = useState<Spot>({ row: ranks.outliers[0] ?? 0, column: WHOLE });
  const [pointed, setPointed] = useState<Spot | null>(null);
  // Ranks that become known may precede the chosen one.
  const spot = chosen.row < ranks.rows.length ? chosen : { row: 0, column: WHOLE };
  const shown = pointed ?? spot;
  if (ranks.rows.length === 0) return <Missing ranks={ranks} files={files} />;
  return (
    <>
      <div class="ranks-verdict">
        <h2>{ranks.headline}</h2>
        <p class="muted">A peak is the most that a rank took from the driver at one moment.</p>
        <Outliers ranks={ranks} onOpen={(row) => openRank(props, ranks, { row, column: WHOLE })} />
        <Missing ranks={ranks} files={files} />
      </div>
      <div class="bar">
        <output class="ranks-moment">{cellWords(ranks, shown.row, shown.column)}</output>
        <Legend scale={scaleOf(ranks)} />
      </div>
      <HeatMapCanvas ranks={ranks} spot={spot} onSpot={setChosen} onPoint={setPointed} onOpen={(at) => openRank(props, ranks, at)} />
    </>
  );
}

function Outliers({ ranks, onOpen }: { readonly ranks: Ranks; readonly onOpen: (row: number) => void }) {
  if (ranks.outliers.length === 0) return null;
  return (
    <ul aria-label="Ranks that differ">
      {ranks.outliers.slice(0, OUTLIERS_SHOWN).map((row) => {
        const { name, causes } = ranks.rows[row]!;
        return (
          <li key={row}>
            <button type="button" class="link" title="Show on the timeline" onClick={() => onOpen(row)}>{name}</button>
            {causes.length > 0 && `: ${causes.join('; ')}`}
          </li>
        );
      })}
      {ranks.outliers.length > OUTLIERS_SHOWN && <li class="muted">{`and ${ranks.outliers.length - OUTLIERS_SHOWN} more`}</li>}
    </ul>
  );
}

function Missing({ ranks: { missing }, files }: { readonly ranks: Ranks; readonly files: readonly FileMeta[] }) {
  if (missing.length === 0) return null;
  const nameOf = (file: number): string => {
    const meta = files.find((each) => each.file === file);
    return meta === undefined ? '' : titleOfFile(meta);
  };
  return (
    <details class="lacks">
      <summary>{`${plural(missing.length, 'recording')} ${missing.length === 1 ? 'is' : 'are'} not compared (yet)`}</summary>
      <p>
        Ranks that are not loaded are known if their digests are stored: <code>gpumemtrace ranks --digest-only out/</code>
      </p>
      <ul>{missing.map(({ file, why }) => <li key={file}>{`${nameOf(file)}: ${why}`}</li>)}</ul>
    </details>
  );
}

function Legend({ scale }: { readonly scale: number }) {
  const steps = [-1, -0.5, 0, 0.5, 1];
  return (
    <span class="ranks-legend" role="img" aria-label={`Colours: from ${percentWords(-scale)} from the median, blue, to ${percentWords(scale)}, orange`}>
      <span>{percentWords(-scale)}</span>
      {steps.map((step) => (
        <i key={step} style={{ background: `color-mix(in srgb, ${cssColor(step < 0 ? 'blue' : 'vermilion')} ${100 * Math.abs(step)}%, var(--panel))` }} />
      ))}
      <span>{percentWords(scale)}</span>
      <span class="muted">from the median of all ranks</span>
    </span>
  );
}

/** Opens the rank on the timeline: the steps of the cell, or all if they are not known yet. */
function openRank({ state, navigator }: ViewProps, ranks: Ranks, { row, column }: Spot): void {
  const rank = ranks.rows[row]!;
  const file = state.meta?.files.find((each) => each.file === rank.file);
  if (file === undefined) return;
  const lane = file.lanes[0]?.lane ?? 0;
  navigator.showLane(file.file, lane, { view: 'timeline' });
  const steps = stepsOf(ranks, rank, column);
  const begin = steps === null ? undefined : file.steps.begin[steps.first - 1];
  const end = steps === null ? undefined : file.steps.end[steps.last - 1];
  if (begin !== undefined && end !== undefined) void activity.track(navigator.showEvents(begin, end));
}

export const RANKS_VIEW: View = { title: 'Ranks', component: RanksView };
