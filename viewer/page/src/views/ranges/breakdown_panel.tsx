// What a range of the recording, a part of its picture, or a moment consists of: beside the
// timeline. A row filters every view; the panel itself stays as it is, so that another row can be
// chosen.

import { useState } from 'preact/hooks';
import { activity } from '../../base/activity';
import { formatBytes, formatCount, formatDelta } from '../../base/format_bytes';
import { formatDuration, formatMoment } from '../../base/format_time';
import { plural } from '../../base/plural';
import { messageOf } from '../../data/data_source';
import type { Filter, RangeQuery, RangeTable } from '../../data/protocol';
import type { Measure } from '../../data/range_measures';
import { breakdownSubject, rangeWords, subjectWords, swappedRanges, withoutRangeA, withRangeA, type Pointed, type Subject } from '../../state/breakdown_range';
import { fileOf } from '../../state/scope';
import type { BreakdownOptions } from '../../state/state';
import { Choice, Toggle } from '../../widgets/choice';
import { SidePanel } from '../../widgets/side_panel';
import { Answered, Empty } from '../../widgets/states';
import { useLatest } from '../../widgets/use_latest';
import { keyOf } from '../../widgets/use_question';
import { VirtualGrid } from '../../widgets/virtual_grid';
import { copyText } from '../details/copy';
import type { ViewProps } from '../view';
import { formatMeasure, measureIn, MEASURES, moreWords, titleOfMeasure, totalOf } from './compared';
import { Levels } from './levels';
import { BY, rangeColumns } from './range_columns';
import { hasFrames, idOf, isByFrame, loadTree, rowsOf, toggled, type Tree, type TreeRow } from './range_tree';
import { filterOfPath, has, without } from './row_filter';
import { breakdownText, FORMATS, type Format } from './rows_text';
import { saveFile } from './save_file';

const ROW_HEIGHT = 24;

interface Picked {
  readonly id: string;
  readonly fields: Partial<Filter>;
}

type Asked = Omit<RangeQuery, 'by' | 'within' | 'offset' | 'limit'>;

/** An answer with what it is of: while a newer one is loading, its heading remains right. */
interface Found {
  readonly tree: Tree;
  readonly query: Asked;
  readonly levels: BreakdownOptions['levels'];
  readonly words: string;
  readonly kind: 'range' | 'moment' | 'compare' | 'ranges';
  readonly measure: Measure; // the one that is shown if two ranges are compared
}

export function BreakdownPanel(props: ViewProps & { readonly pointed: Pointed }) {
  const { state, store, source } = props;
  const { breakdown: options } = state;
  const { levels } = options;
  const [picked, setPicked] = useState<Picked | null>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const isPicked = picked !== null && has(state.filter, picked.fields);
  const filter = isPicked ? without(state.filter, picked.fields) : state.filter;
  const subject = breakdownSubject(state, props.pointed);
  const kind = subject.rangeA !== null ? 'ranges' : subject.kind === 'compare' ? 'compare' : subject.from === subject.to ? 'moment' : 'range';
  const measure = measureIn(options.sort);
  const query: Asked = {
    file: state.file, lane: state.lane, filter, from: subject.from, to: subject.to, box: subject.box, other: subject.rangeA,
    folded: options.folded, sort: sortOf(options, kind), side: kind !== 'ranges' || options.side === 'name' ? 'this' : options.side, descending: options.descending,
  };
  const words = subjectWords(state, subject);
  const asked = useLatest<Found>(keyOf(query, measure, levels, [...open], words), async (signal) => {
    const tree = await loadTree((each) => source.range(each, signal), query, levels, open, false);
    return { tree, query, levels, words, kind, measure };
  });
  const set = (change: Partial<BreakdownOptions>): void => store.update((old) => ({ breakdown: { ...old.breakdown, ...change } }));
  const toggle = (row: TreeRow): void => setOpen(toggled(open, row));
  const pick = (row: TreeRow): void => {
    const fields = filterOfPath(row, levels);
    if (fields === null) {
      props.announce('No filter matches exactly this row');
      return;
    }
    const isSet = has(state.filter, fields);
    setPicked(isSet ? null : { id: idOf(row.parents, row.row), fields });
    store.update({ filter: isSet ? without(state.filter, fields) : { ...filter, ...fields } });
  };
  return (
    <SidePanel label="Breakdown">
      <Controls {...props} subject={subject} set={set} />
      <Answered asked={asked} what="Adding up…">
        {(found) => {
          const { tree } = found;
          const rows = rowsOf(tree, found.levels, open);
          return (
            <>
              <div class="breakdown-words">
                <p role={subject.kind === 'pointer' || subject.kind === 'brush' ? undefined : 'status'}>{found.words}{amountWords(found)}</p>
                {levels.some(isByFrame) && <Toggle label="Fold noise" on={options.folded} onToggle={(folded) => set({ folded })} />}
              </div>
              {tree.top.total_rows === 0 ? <Empty title="Nothing that matches is held or allocated here." /> : (
                <VirtualGrid<TreeRow>
                  label={`Breakdown by ${found.levels[0]!}`}
                  columns={rangeColumns({ by: found.levels[0]!, kind: found.kind, measure: found.measure, hasFrames: hasFrames(rows), table: tree.top, toggle })}
                  count={rows.length}
                  rowHeight={ROW_HEIGHT}
                  rowAt={(index) => rows[index]}
                  onShow={() => undefined}
                  isSelected={({ row, parents }) => isPicked && picked.id === idOf(parents, row)}
                  onOpen={pick}
                  tree={{ of: (row) => ({ depth: row.parents.length, isOpen: row.canOpen ? row.isOpen : null }), toggle }}
                  sort={{ id: found.kind === 'ranges' ? options.side : found.query.sort, descending: options.descending }}
                  onSort={(id) => set(sorted(options, found.kind, id))}
                  resetKey={keyOf(levels, options.sort, options.side, options.descending)}
                />
              )}
              <Export {...props} found={found} open={open} />
            </>
          );
        }}
      </Answered>
    </SidePanel>
  );
}

interface ControlsProps extends ViewProps {
  readonly subject: Subject;
  readonly set: (change: Partial<BreakdownOptions>) => void;
}

function Controls({ state, store, navigator, subject, set }: ControlsProps) {
  const { breakdown: options, selection } = state;
  return (
    <>
      <div class="bar breakdown-of" role="group" aria-label="What is broken down">
        <Choice
          label="Break down" value={options.of} onChoose={(of) => set({ of, ...sortFor(options, of) })}
          options={[
            ['follow', 'selection, pointer, cursor'], ['range', 'selection, or what is shown'], ['cursor', "the cursor's moment"],
            ['compare', selection.kind === 'range' ? 'change in the selection' : 'change between the cursors'],
            ['ranges', 'selection compared with A', state.rangeA === null ? 'no range is A' : ''],
          ]}
        />
        <Choice label="by" value={options.levels[0]!} options={BY} onChoose={(by) => set({ levels: [by, ...options.levels.filter((each) => each !== by)] })} />
        {selection.kind === 'range' && subject.kind !== 'cursor' && (
          <>
            <button type="button" title="F" onClick={() => void navigator.showEvents(selection.from, selection.to)}>Zoom</button>
            <button type="button" title="Esc" onClick={() => store.update({ selection: { kind: 'none' } })}>Unselect</button>
          </>
        )}
        <button type="button" class="plain close" aria-label="Close the breakdown" title="Q" onClick={() => set({ open: false })}>×</button>
      </div>
      <div class="bar" role="group" aria-label="Comparison of two ranges">
        <button type="button" title="Shift+C" onClick={() => store.update(withRangeA)}>{subject.rangeA === null ? 'Compare with another range' : 'Make it A'}</button>
        {subject.rangeA !== null && (
          <>
            <Choice label="Measure" value={measureIn(options.sort)} options={MEASURES} onChoose={(sort) => set({ sort })} />
            <button type="button" title="Shift+X" onClick={() => store.update(swappedRanges)}>Swap A and B</button>
            <button type="button" onClick={() => store.update(withoutRangeA)}>Remove A</button>
          </>
        )}
      </div>
      <Levels levels={options.levels} onChange={(levels) => set({ levels })} />
    </>
  );
}

/** A moment has no growth to sort by. */
function sortOf({ sort, side }: BreakdownOptions, kind: Found['kind']): RangeQuery['sort'] {
  if (kind === 'ranges') return side === 'name' ? 'name' : measureIn(sort);
  const isLacking = kind === 'moment' ? !['bytes', 'inclusive', 'name'].includes(sort) : ['mean_bytes', 'allocation_rate', kind === 'range' ? 'end_bytes' : ''].includes(sort);
  return isLacking ? 'bytes' : sort;
}

function sortFor(old: BreakdownOptions, of: BreakdownOptions['of']): Partial<BreakdownOptions> {
  if (of === 'compare') return { sort: 'growth', descending: true };
  if (of === 'ranges') return { sort: 'bytes', side: 'difference', descending: true };
  return old.of === 'compare' || old.of === 'ranges' ? { sort: 'bytes', descending: true } : {};
}

/** `id`: of a column. */
function sorted(old: BreakdownOptions, kind: Found['kind'], id: string): Partial<BreakdownOptions> {
  const key = kind === 'ranges' ? 'side' : 'sort';
  return { [key]: id, descending: old[key] === id ? !old.descending : id !== 'name' };
}

/** ', 0.52 s: 956 MiB at its peak (event 4,010), 1,203 allocations, growth +12 MiB'. */
function amountWords(found: Found): string {
  const { kind, tree: { top: { total, peak_event: peak, from_ns: begin, to_ns: end } } } = found;
  if (kind === 'ranges') return comparedWords(found);
  if (kind === 'moment') return `, ${formatMoment(end, 1e6)}: ${formatBytes(total.bytes)}`;
  const growth = formatDelta(total.growth);
  if (kind === 'compare') return `, ${formatDuration(end - begin)}: ${growth}, from ${formatBytes(total.end_bytes - total.growth)} to ${formatBytes(total.end_bytes)}`;
  const allocations = plural(total.allocations, 'allocation');
  return `, ${formatDuration(end - begin)}: ${formatBytes(total.bytes)} at its peak (event ${formatCount(peak)}), ${allocations}, growth ${growth}`;
}

/** ', 0.52 s. A: events 3 to 17, 0.48 s. At the peak: 956 MiB in B, 12.0 MiB more than in A, +1.3 %'. */
function comparedWords({ query: { other: rangeA }, measure, tree: { top } }: Found): string {
  const ofA = rangeA === null || top.other === null ? '' : `${rangeWords(rangeA)}, ${formatDuration(top.other.to_ns - top.other.from_ns)}`;
  const both = totalOf(measure, top);
  const title = titleOfMeasure(measure === 'inclusive' ? 'bytes' : measure);
  return `, ${formatDuration(top.to_ns - top.from_ns)}. A: ${ofA}. ${title.charAt(0).toUpperCase()}${title.slice(1)}: ${formatMeasure(measure, both.b)} in B, ${moreWords(measure, both)}`;
}

interface ExportProps extends ViewProps {
  readonly found: Found;
  readonly open: ReadonlySet<string>;
}

function Export({ found, open, state, source, announce }: ExportProps) {
  const [format, setFormat] = useState<Format>('csv');
  const { query, measure, levels, tree: { top } } = found;
  const withText = (use: (text: string) => void): void => {
    const whole = loadTree((each) => source.range(each), query, levels, open, true);
    void activity.track(whole).then((tree) => use(breakdownText(format, { query, measure, levels, open, tree })), (error: unknown) => announce(messageOf(error)));
  };
  const copy = (): void => withText((text) => {
    void copyText(text).then((isDone) => announce(isDone ? 'Copied' : 'The browser did not let the page copy'));
  });
  const save = (): void => withText((text) => {
    const name = fileOf(state)?.name.replace(/\.[^.]*$/, '') ?? 'recording';
    saveFile(`${name}.${levels[0]!}.${query.from}-${query.to}.${FORMATS[format].ending}`, FORMATS[format].type, text);
  });
  return (
    <div class="bar breakdown-export" role="group" aria-label="Export">
      <Choice label="As" value={format} options={(Object.keys(FORMATS) as Format[]).map((each) => [each, FORMATS[each].title] as const)} onChoose={setFormat} />
      <button type="button" onClick={copy}>Copy</button>
      <button type="button" onClick={save}>Download</button>
      <span class="muted">{lengthWords(top)}</span>
    </div>
  );
}

function lengthWords({ rows, total_rows: all }: RangeTable): string {
  return rows.length < all ? `the first ${formatCount(rows.length)} of ${plural(all, 'row')} are shown` : plural(all, 'row');
}
