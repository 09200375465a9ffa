// What a range of the recording, or a moment, consists of: beside the timeline. A row filters
// every view; the panel itself stays as it is, so that another row can be chosen.

import { useEffect, useState } from 'preact/hooks';
import { activity } from '../../base/activity';
import { formatBytes, formatCount, formatDelta } from '../../base/format_bytes';
import { formatDuration } from '../../base/format_time';
import { plural } from '../../base/plural';
import { messageOf, type DataSource } from '../../data/data_source';
import type { Filter, RangeQuery, RangeRow, RangeTable } from '../../data/protocol';
import { breakdownRange, breakdownWords, type EventRange } from '../../state/breakdown_range';
import { stageOf } from '../../state/live';
import { fileOf } from '../../state/scope';
import type { BreakdownOptions } from '../../state/state';
import { Choice, Toggle } from '../../widgets/choice';
import { SidePanel } from '../../widgets/side_panel';
import { Answered, Empty } from '../../widgets/states';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { VirtualGrid } from '../../widgets/virtual_grid';
import { copyText } from '../details/copy';
import type { ViewProps } from '../view';
import { BY, rangeColumns } from './range_columns';
import { filterOfRow, has, without } from './row_filter';
import { breakdownText, FORMATS, type Format } from './rows_text';
import { saveFile } from './save_file';

const ROW_HEIGHT = 24;
const PAGE = 500; // rows; the most that is answered at once
const MOVES_MS = 120; // while the timeline moves, the panel is asked for less often

interface Picked {
  readonly by: RangeQuery['by'];
  readonly fields: Partial<Filter>;
}

export function BreakdownPanel(props: ViewProps) {
  const { state, store, source, navigator } = props;
  const options = state.breakdown;
  const [picked, setPicked] = useState<Picked | null>(null);
  const isPicked = picked !== null && picked.by === options.by && has(state.filter, picked.fields);
  const filter = isPicked ? without(state.filter, picked.fields) : state.filter;
  const range = useSettled(breakdownRange(state), state.selection.kind === 'range' || options.of === 'cursor');
  const query: RangeQuery = {
    file: state.file, lane: state.lane, filter, ...range,
    by: options.by, folded: options.folded && canFold(options.by), sort: options.sort, descending: options.descending, offset: 0, limit: PAGE,
  };
  const asked = useQuestion(keyOf(query, stageOf(state)), (signal) => source.range(query, signal));
  const set = (change: Partial<BreakdownOptions>): void => store.update((old) => ({ breakdown: { ...old.breakdown, ...change } }));
  const pick = (row: RangeRow): void => {
    const fields = filterOfRow(options.by, row);
    if (fields === null) return;
    const isSet = has(state.filter, fields);
    setPicked(isSet ? null : { by: options.by, fields });
    store.update({ filter: isSet ? without(state.filter, fields) : { ...filter, ...fields } });
  };
  const { selection } = state;
  return (
    <SidePanel label="Breakdown">
      <div class="bar breakdown-of" role="group" aria-label="What is broken down">
        <Choice
          label="Break down" value={options.of} onChoose={(of) => set({ of })}
          options={[['range', selection.kind === 'range' ? 'the selection' : 'what is shown'], ['cursor', "the cursor's moment"]]}
        />
        <Choice label="by" value={options.by} options={BY} onChoose={(by) => set({ by })} />
        {selection.kind === 'range' && options.of === 'range' && (
          <>
            <button type="button" title="F" onClick={() => void navigator.showEvents(selection.from, selection.to)}>Zoom</button>
            <button type="button" title="Esc" onClick={() => store.update({ selection: { kind: 'none' } })}>Unselect</button>
          </>
        )}
        <button type="button" class="plain close" aria-label="Close the breakdown" title="Q" onClick={() => set({ open: false })}>×</button>
      </div>
      <Answered asked={asked} what="Adding up…">
        {(table) => (
          <>
            <div class="breakdown-words">
              <p role="status">{breakdownWords(state, range)}{momentWords(range, table)}</p>
              {canFold(options.by) && <Toggle label="Fold noise" on={options.folded} onToggle={(folded) => set({ folded })} />}
            </div>
            {table.total_rows === 0 ? <Empty title="Nothing that matches is held or allocated here." /> : (
              <VirtualGrid<RangeRow>
                label={`Breakdown by ${options.by}`}
                columns={rangeColumns(options.by, range.from === range.to, table.total)}
                count={table.rows.length}
                rowHeight={ROW_HEIGHT}
                rowAt={(index) => table.rows[index]}
                onShow={() => undefined}
                isSelected={(row) => isPicked && isRowOf(options.by, row, picked.fields)}
                onOpen={pick}
                sort={{ id: options.sort, descending: options.descending }}
                onSort={(id) => set(sorted(options, id as RangeQuery['sort']))}
                resetKey={keyOf(options.by, options.sort, options.descending)}
              />
            )}
            <Export {...props} query={query} table={table} />
          </>
        )}
      </Answered>
    </SidePanel>
  );
}

/** Returns whether there are rows of noise, such as frames of the interpreter and the allocator. */
function canFold(by: RangeQuery['by']): boolean {
  return by === 'function' || by === 'line';
}

function isRowOf(by: RangeQuery['by'], row: RangeRow, fields: Partial<Filter>): boolean {
  const own = filterOfRow(by, row);
  return own !== null && keyOf(own) === keyOf(fields);
}

function sorted(old: BreakdownOptions, sort: RangeQuery['sort']): Partial<BreakdownOptions> {
  return { sort, descending: old.sort === sort ? !old.descending : sort !== 'name' };
}

/** ', 0.52 s: 956 MiB at its peak (event 4,010), 1,203 allocations, +12 MiB'. */
function momentWords({ from, to }: EventRange, { total, peak_event: peak, from_ns: begin, to_ns: end }: RangeTable): string {
  if (from === to) return `: ${formatBytes(total.bytes)}`;
  const allocations = plural(total.allocations, 'allocation');
  return `, ${formatDuration(end - begin)}: ${formatBytes(total.bytes)} at its peak (event ${formatCount(peak)}), ${allocations}, growth ${formatDelta(total.growth)}`;
}

/** Returns the range once it has not changed for a while; at once if `isStill`. */
function useSettled(range: EventRange, isStill: boolean): EventRange {
  const [settled, setSettled] = useState(range);
  const isSame = settled.from === range.from && settled.to === range.to;
  useEffect(() => {
    if (isSame || isStill) {
      if (!isSame) setSettled(range);
      return undefined;
    }
    const end = activity.begin();
    const timer = setTimeout(() => {
      setSettled(range);
      end();
    }, MOVES_MS);
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [range.from, range.to, isStill]);
  return isStill ? range : settled;
}

interface ExportProps extends ViewProps {
  readonly query: RangeQuery;
  readonly table: RangeTable;
}

function Export({ query, table, state, source, announce }: ExportProps) {
  const [format, setFormat] = useState<Format>('csv');
  const withText = (use: (text: string) => void): void => {
    void activity.track(allRows(source, query)).then((all) => use(breakdownText(format, query, all)), (error: unknown) => announce(messageOf(error)));
  };
  const copy = (): void => withText((text) => {
    void copyText(text).then((isDone) => announce(isDone ? 'Copied' : 'The browser did not let the page copy'));
  });
  const save = (): void => withText((text) => {
    const name = fileOf(state)?.name.replace(/\.[^.]*$/, '') ?? 'recording';
    saveFile(`${name}.${query.by}.${query.from}-${query.to}.${FORMATS[format].ending}`, FORMATS[format].type, text);
  });
  return (
    <div class="bar breakdown-export" role="group" aria-label="Export">
      <Choice label="As" value={format} options={(Object.keys(FORMATS) as Format[]).map((each) => [each, FORMATS[each].title] as const)} onChoose={setFormat} />
      <button type="button" onClick={copy}>Copy</button>
      <button type="button" onClick={save}>Download</button>
      <span class="muted">{table.rows.length < table.total_rows ? `the first ${formatCount(table.rows.length)} of ${plural(table.total_rows, 'row')} are shown` : plural(table.total_rows, 'row')}</span>
    </div>
  );
}

/** Returns the table with all its rows. */
export async function allRows(source: Pick<DataSource, 'range'>, query: RangeQuery): Promise<RangeTable> {
  const first = await source.range({ ...query, offset: 0, limit: PAGE });
  const rows = [...first.rows];
  while (rows.length < first.total_rows) {
    const next = await source.range({ ...query, offset: rows.length, limit: PAGE });
    if (next.rows.length === 0) break; // a live recording has moved on
    rows.push(...next.rows);
  }
  return { ...first, rows };
}
