// The list of what happened on the device of a lane, beside the segments. The cursor and the list follow
// each other: an entry that is clicked, or reached by keys, moves the cursor; a cursor that is moved
// elsewhere shows its entry.

import { useEffect, useRef, useState } from 'preact/hooks';
import { formatCount } from '../../base/format_bytes';
import { formatMoment } from '../../base/format_time';
import { plural } from '../../base/plural';
import type { EventPage, EventRow } from '../../data/protocol';
import { cursorEvent, laneOf } from '../../state/scope';
import { Toggle } from '../../widgets/choice';
import { SidePanel } from '../../widgets/side_panel';
import { Empty, Failed, Loading } from '../../widgets/states';
import { Unfiltered } from '../../widgets/unfiltered';
import { usePagedRows } from '../../widgets/use_paged_rows';
import { keyOf, useQuestion } from '../../widgets/use_question';
import { VirtualGrid, type Column } from '../../widgets/virtual_grid';
import type { ViewProps } from '../view';
import { countOf, eventWords, KIND_GROUPS, selectionOf } from './event_words';

const ROW_HEIGHT = 22;

interface EventsPanelProps extends ViewProps {
  /** Called with the entry at the cursor. */
  readonly onEntry: (row: EventRow) => void;
}

export function EventsPanel(props: EventsPanelProps) {
  const { state, store, source, onEntry } = props;
  const { kinds } = state.list;
  const event = cursorEvent(state);
  const place = { file: state.file, lane: state.lane, kinds };
  const key = keyOf(place);
  const list = usePagedRows<EventRow, EventPage>(key, (offset, limit, signal) => source.events({ ...place, offset, limit, event: 0 }, signal));
  const [active, setActive] = useState(0);
  // The entry that the user has reached last: its row may have to be loaded before it is chosen.
  const reached = useRef<{ readonly key: string; readonly index: number; event: number | null } | null>(null);
  const isOwn = reached.current !== null && reached.current.key === key && (reached.current.event === null || reached.current.event === event);
  const found = useQuestion(isOwn ? null : keyOf(key, event), (signal) => source.events({ ...place, offset: 0, limit: 1, event }, signal));
  const { answer } = found;
  useEffect(() => {
    if (answer !== null && !found.loading) setActive(answer.position);
  }, [answer, found.loading]);

  const row = list.rowAt(active);
  useEffect(() => {
    const wanted = reached.current;
    if (wanted === null || wanted.event !== null || wanted.index !== active || row === undefined) return;
    wanted.event = row.event;
    store.update({ cursor: row.event, selection: selectionOf(row) });
  });
  const entry = row?.event === event ? row : undefined;
  useEffect(() => {
    if (entry !== undefined) onEntry(entry);
  }, [entry]);
  const total = list.head?.total ?? 0;
  const move = (index: number): void => {
    const inside = Math.min(Math.max(0, index), total - 1);
    if (inside < 0) return;
    reached.current = { key, index: inside, event: null };
    list.onShow(inside, inside + 1);
    setActive(inside);
  };
  const heap = laneOf(state)?.heap ?? '';
  const close = (): void => store.update((old) => ({ list: { ...old.list, open: false } }));
  return (
    <SidePanel label="Events">
      <div class="bar event-kinds" role="group" aria-label="Which events are listed">
        {KIND_GROUPS.map(({ title, kinds: group }) => {
          const count = list.head === null ? null : countOf(group, list.head.counts);
          const toggle = (on: boolean): void => store.update((old) => ({ list: { ...old.list, kinds: on ? old.list.kinds | group : old.list.kinds & ~group } }));
          return count === 0 ? null : <Toggle key={title} label={count === null ? title : `${title} ${formatCount(count)}`} on={(kinds & group) === group} onToggle={toggle} />;
        })}
        <button type="button" class="plain close" aria-label="Close the list of events" title="Q" onClick={close}>×</button>
      </div>
      <Unfiltered state={state} store={store} words="The list shows all events, also of what the filter leaves out." />
      {list.failure !== '' && <Failed message={list.failure} />}
      {list.head === null && list.loading && <Loading what="Listing the events…" />}
      {list.head !== null && list.head.note !== '' && <p class="muted event-note">{list.head.note}</p>}
      {list.head !== null && total === 0 && <Empty title="No event of these kinds" />}
      {total > 0 && (
        <>
          <VirtualGrid<EventRow>
            label={`Events: ${plural(total, 'entry', 'entries')}`}
            columns={columnsOf(heap)}
            count={total}
            rowHeight={ROW_HEIGHT}
            rowAt={list.rowAt}
            onShow={list.onShow}
            isSelected={(each) => each === row}
            onOpen={() => undefined}
            sort={{ id: '', descending: false }}
            onSort={() => undefined}
            resetKey={key}
            active={active}
            onMove={move}
          />
          <output class="muted event-place" aria-live="polite">{row === undefined ? '' : `${formatCount(active + 1)} of ${formatCount(total)}: event ${formatCount(row.event)}, ${eventWords(row, heap)}`}</output>
        </>
      )}
    </SidePanel>
  );
}

function columnsOf(heap: string): readonly Column<EventRow>[] {
  const column = (id: string, title: string, width: string, cell: Column<EventRow>['cell'], numeric = false): Column<EventRow> => ({ id, title, width, numeric, sortable: false, cell });
  return [
    column('event', 'Event', '72px', (row) => formatCount(row.event), true),
    column('time', 'Time', '84px', (row) => formatMoment(row.ns, 1e3), true),
    column('what', 'What', 'minmax(150px, 1fr)', (row) => eventWords(row, heap)),
    column('text', 'Allocated by, or name', 'minmax(120px, 1.2fr)', (row) => <span title={[row.text, row.address, row.stream === '' ? '' : `stream ${row.stream}`].filter((part) => part !== '').join(', ')}>{row.text}</span>),
  ];
}
