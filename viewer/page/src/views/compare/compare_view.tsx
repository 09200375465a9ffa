// Two recordings: their live memory on one axis with aligned steps, and what changed per stack.

import { useMemo } from 'preact/hooks';
import { formatCount } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { Json } from '../../base/json';
import type { DataSource } from '../../data/data_source';
import { eventAt } from '../../data/event_at';
import type { Compare, CurveTile, FileMeta } from '../../data/protocol';
import { isFiltering } from '../../state/filter';
import { fileOf, laneOf } from '../../state/scope';
import type { State } from '../../state/state';
import { Choice } from '../../widgets/choice';
import { Answered, Empty } from '../../widgets/states';
import { Unfiltered } from '../../widgets/unfiltered';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { Notes, PageBody, type Links } from '../answers/answer_parts';
import { follow, hrefOf } from '../answers/follow';
import type { View, ViewProps } from '../view';
import { align, pairWords, resample } from './alignment';
import { CompareChart } from './compare_chart';
import { filterWords, keysOf, rowTest } from './compare_filter';
import { alignedTimes, comparePage, type SidedLink } from './compare_page';
import type { Link } from '../answers/page';
import { otherFile, otherMoment } from '../flame/other_moment';

const COLUMNS = 1000;
const TILE_COLUMNS = 8192;

interface Both {
  readonly compare: Compare;
  readonly tiles: readonly [CurveTile, CurveTile] | null; // null: the other file has no such lane
}

function CompareView(props: ViewProps) {
  const { state, store, source } = props;
  const file = fileOf(state);
  const others = (state.meta?.files ?? []).filter((each) => each.file !== state.file);
  const other = otherFile(state);
  const moment = otherMoment(state);
  const key = file === null || other === null ? null : keyOf(state.file, state.lane, other.file, moment?.lane);
  const asked = useQuestion(key, (signal) => ask(source, state, file!, other!, moment?.lane ?? null, signal));
  if (file === null) return null;
  if (other === null) {
    return (
      <Empty title="Only one recording is open">
        <p>
          To compare two, open both: <code>gpumemtrace view {file.name} other.gmt</code>
        </p>
      </Empty>
    );
  }
  return (
    <section class="view compare-view" aria-label="Compare">
      <div class="bar">
        <span>{file.name} with</span>
        <Choice
          label="the other recording"
          value={String(other.file)}
          options={others.map((each) => [String(each.file), each.name] as const)}
          onChoose={(chosen) => store.update({ other: Number(chosen), otherCursor: null })}
        />
        <button type="button" onClick={() => void showDifference(props, asked.loading ? null : (asked.answer?.compare ?? null), file, other)}>
          Flame graph of the difference
        </button>
      </div>
      <Answered asked={asked} what="Comparing stacks…">
        {(both) => <Compared {...props} both={both} file={file} other={other} />}
      </Answered>
    </section>
  );
}

async function ask(
  source: DataSource,
  state: State,
  file: FileMeta,
  other: FileMeta,
  otherLane: number | null,
  signal: AbortSignal,
): Promise<Both> {
  const compare = await source.compare(file.file, other.file, signal);
  const lane = laneOf(state);
  if (lane === null || otherLane === null) return { compare, tiles: null };
  const axis = compare.aligned_by === 'time' ? 'time' : 'event'; // steps are given as events
  const curve = (of: FileMeta, index: number): Promise<CurveTile> => {
    const to = Math.max(1, axis === 'time' ? of.end_ns : of.events);
    return source.curve({ file: of.file, lane: index, axis, from: 0, to, columns: TILE_COLUMNS }, signal);
  };
  return { compare, tiles: await Promise.all([curve(file, lane.lane), curve(other, otherLane)]) };
}

/**
 * Opens the flame graph of the difference at the moments that are compared here, if these are
 * known.
 */
async function showDifference({ state, store, source }: ViewProps, compare: Compare | null, file: FileMeta, other: FileMeta): Promise<void> {
  const times = compare === null ? null : alignedTimes(new Json(compare.json), laneOf(state)?.device ?? null);
  const [one, two] = times === null || compare === null ? [] : isBase(new Json(compare.json), file, other) ? times : [times[1], times[0]];
  const eventIn = (index: number, lane: number, ns: number | undefined): Promise<number | null> =>
    ns === undefined ? Promise.resolve(null) : eventAt(source, index, lane, ns);
  const [cursor, otherCursor] = await Promise.all([
    eventIn(file.file, state.lane, one), eventIn(other.file, otherMoment(state)?.lane ?? 0, two),
  ]);
  const { view, file: shown } = store.get();
  if (view !== state.view || shown !== state.file) return; // the reader has gone elsewhere
  store.update((old) => ({ view: 'flame', of: 'live', cursor, otherCursor, flame: { ...old.flame, compare: true, focus: 0 } }));
}

interface ComparedProps extends ViewProps {
  readonly both: Both;
  readonly file: FileMeta;
  readonly other: FileMeta;
}

function Compared({ both, file, other, ...props }: ComparedProps) {
  const { compare, tiles } = both;
  const alignment = useMemo(() => align(compare, [file, other]), [both]);
  const curves = useMemo(
    () => (tiles === null ? null : ([resample(tiles[0], alignment, 0, COLUMNS), resample(tiles[1], alignment, 1, COLUMNS)] as const)),
    [both],
  );
  const json = new Json(compare.json);
  const baseIsFile = isBase(json, file, other);
  const { filter } = props.state;
  const sides = baseIsFile ? { base: file.file, new: other.file } : { base: other.file, new: file.file };
  // The comparison does not contain the keys of call sites.
  const keys = useQuestion(filter.key === null ? null : keyOf(sides, compare.headline), (signal) => keysOf(json, props.source, sides, signal));
  const page = comparePage(json, rowTest(filter, baseIsFile ? 'base' : 'new', keys.answer ?? new Map()));
  const fileOfLink = (link: Link): number => {
    const side = 'side' in link ? (link as SidedLink).side : 'new';
    return (side === 'base') === baseIsFile ? file.file : other.file;
  };
  const links: Links = {
    go: (link) => void follow(link, props, fileOfLink(link)),
    href: (link) => hrefOf(link, props.state, fileOfLink(link)),
  };
  return (
    <article class="answer unsure">
      <h2>{compare.headline}</h2>
      <Unfiltered state={props.state} store={props.store} words={filterWords(filter)} />
      <PageBody
        page={{ ...page, notes: [] }} links={links} view={props}
        lead={
          <>
            {curves !== null && (
              <CompareChart
                curves={curves}
                names={[file.name, other.name]}
                note={isFiltering(filter) ? 'all memory, regardless of the filter' : ''}
                alignment={alignment}
                wordsOf={(position) => positionWords(compare, [file, other], position)}
              />
            )}
            <Notes notes={page.notes} />
          </>
        }
      />
    </article>
  );
}

function positionWords(compare: Compare, files: readonly [FileMeta, FileMeta], position: number): string {
  if (compare.aligned_by === 'event') return `event ${formatCount(position)}`;
  return compare.aligned_by === 'step' ? pairWords(compare, files, position) : formatDuration(position);
}

/**
 * Returns whether the comparison uses `file` as its base, judged by file names; true if they do not
 * decide it.
 */
function isBase(json: Json, file: FileMeta, other: FileMeta): boolean {
  const base = json.text('base_file');
  if (base === other.path || base === other.name) return base === file.path;
  return true;
}

export const COMPARE_VIEW: View = { title: 'Compare', component: CompareView };
