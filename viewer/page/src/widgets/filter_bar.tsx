// The filter that all views share: text, and the fields behind the "Fields" button. Each field that
// is set is shown as a chip that clears it, so that an active filter is always visible.

import { useState } from 'preact/hooks';
import { formatBytes, parseBytes } from '../base/format_bytes';
import { words } from '../base/words';
import type { DataSource } from '../data/data_source';
import type { Filter, StackInfo } from '../data/protocol';
import { errorOfText } from '../data/text_filter';
import { fileOf } from '../state/scope';
import { NO_FILTER, type State } from '../state/state';
import type { Store } from '../state/store';
import { DraftInput } from './draft_input';
import { keyOf, useQuestion } from './use_question';

export interface Chip {
  readonly field: keyof Filter;
  readonly label: string;
}

/**
 * Returns the fields that a filter sets, except the text, which is visible in its own field.
 * `place`: the line of code of the stack, '' if it is not known.
 */
export function chipsOf(filter: Filter, place = ''): Chip[] {
  const chips: (Chip | null)[] = [
    filter.category === '' ? null : { field: 'category', label: `category ${words(filter.category)}` },
    filter.stack === null ? null : { field: 'stack', label: place === '' ? `stack ${filter.stack}` : place },
    filter.forward_stack === null ? null : { field: 'forward_stack', label: `backward of stack ${filter.forward_stack}` },
    filter.key === null ? null : { field: 'key', label: `call site ${filter.key.toString(16)}` },
    filter.stream === '' ? null : { field: 'stream', label: `stream ${filter.stream}` },
    filter.thread === '' ? null : { field: 'thread', label: `thread ${filter.thread}` },
    filter.min_size === null ? null : { field: 'min_size', label: `at least ${formatBytes(filter.min_size)}` },
    filter.max_size === null ? null : { field: 'max_size', label: `at most ${formatBytes(filter.max_size)}` },
  ];
  return chips.filter((chip) => chip !== null);
}

/** Returns 'train.py:11' of the label 'forward (train.py:11) > relu'. */
export function placeIn(stack: StackInfo | undefined): string {
  return /\(([^()\s]+:\d+)\)/.exec(stack?.label ?? '')?.[1] ?? '';
}

interface FilterBarProps {
  readonly state: State;
  readonly store: Store;
  readonly source: DataSource;
}

export function FilterBar({ state, store, source }: FilterBarProps) {
  const [more, setMore] = useState(false);
  const { stack } = state.filter;
  const named = useQuestion(stack === null ? null : keyOf(state.file, stack), (signal) => source.stacks(state.file, [stack!], signal));
  const chips = chipsOf(state.filter, named.loading ? '' : placeIn(named.answer?.[0]));
  const set = (change: Partial<Filter>): void => store.update((old) => ({ filter: { ...old.filter, ...change } }));
  const invalid = errorOfText(state.filter.text);
  const isSet = chips.length > 0 || state.filter.text !== '';
  return (
    <div class="filter-bar" role="search" aria-label="Filter">
      <input
        id="filter-text"
        type="search"
        aria-label="Filter by frame, file, address or name"
        placeholder="Filter: frame, file, address, name, /regex/"
        value={state.filter.text}
        aria-invalid={invalid !== ''}
        aria-describedby={invalid === '' ? undefined : 'filter-error'}
        onInput={(event) => set({ text: event.currentTarget.value })}
      />
      {invalid !== '' && <span id="filter-error" class="failed" role="alert">{invalid}</span>}
      <button type="button" aria-expanded={more} aria-controls="filter-fields" onClick={() => setMore(!more)}>
        Fields
      </button>
      {chips.map((chip) => (
        <button
          key={chip.field}
          type="button"
          class="chip"
          aria-label={`Remove the filter ${chip.label}`}
          onClick={() => set({ [chip.field]: NO_FILTER[chip.field] })}
        >
          {chip.label} ×
        </button>
      ))}
      {isSet && (
        <button type="button" onClick={() => store.update({ filter: NO_FILTER })}>
          Clear filter
        </button>
      )}
      {more && <Fields state={state} set={set} />}
    </div>
  );
}

function Fields({ state, set }: { readonly state: State; readonly set: (change: Partial<Filter>) => void }) {
  const file = fileOf(state);
  const { filter } = state;
  return (
    <div id="filter-fields" class="bar filter-fields">
      <Pick label="Category" value={filter.category} values={file?.categories ?? []} onPick={(category) => set({ category })} />
      <Pick label="Stream" value={filter.stream} values={file?.streams ?? []} onPick={(stream) => set({ stream })} />
      <Pick label="Thread" value={filter.thread} values={file?.threads ?? []} onPick={(thread) => set({ thread })} />
      <SizeField label="At least" value={filter.min_size} onSize={(min_size) => set({ min_size })} />
      <SizeField label="At most" value={filter.max_size} onSize={(max_size) => set({ max_size })} />
    </div>
  );
}

interface PickProps {
  readonly label: string;
  readonly value: string;
  readonly values: readonly string[];
  readonly onPick: (value: string) => void;
}

function Pick({ label, value, values, onPick }: PickProps) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(event) => onPick(event.currentTarget.value)}>
        <option value="">any</option>
        {values.map((each) => (
          <option key={each} value={each} selected={each === value}>
            {words(each)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface SizeFieldProps {
  readonly label: string;
  readonly value: number | null;
  readonly onSize: (size: number | null) => void;
}

function SizeField({ label, value, onSize }: SizeFieldProps) {
  return (
    <label class="choice">
      <span>{label}</span>
      <DraftInput
        size={8}
        placeholder="64 MiB"
        value={value === null ? '' : formatBytes(value)}
        onCommit={(text) => {
          const size = text === '' ? null : parseBytes(text);
          const isValid = text === '' || size !== null;
          if (isValid) onSize(size);
          return isValid;
        }}
      />
    </label>
  );
}
