// A text field whose text is taken over when it is committed, by Enter or by leaving the field.
// Until then it keeps what is being typed, whatever the page renders meanwhile.

import { useRef, useState } from 'preact/hooks';

interface DraftInputProps {
  readonly inputMode?: 'decimal';
  readonly maxLength?: number;
  readonly placeholder?: string;
  readonly size?: number;
  readonly value: string; // shown unless another text was typed
  /** Returns whether the text is valid. If not, it stays in the field and is marked. */
  readonly onCommit: (text: string) => boolean;
}

interface Draft {
  readonly text: string | null; // null: nothing was typed
  readonly wrong: boolean;
}
const NO_DRAFT: Draft = { text: null, wrong: false };

export function DraftInput({ value, onCommit, ...attributes }: DraftInputProps) {
  const [{ text, wrong }, setDraft] = useState(NO_DRAFT);
  const isTyped = useRef(false); // since the last commit
  // The browser's own event, change, does not come for a text that was shown when typing began.
  const commit = (typed: string): void => {
    if (!isTyped.current) return;
    isTyped.current = false;
    setDraft(onCommit(typed) ? NO_DRAFT : { text: typed, wrong: true });
  };
  return (
    <input
      {...attributes}
      type="text"
      value={text ?? value}
      aria-invalid={wrong}
      onInput={({ currentTarget: { value: typed } }) => {
        isTyped.current = true;
        setDraft((old) => ({ ...old, text: typed }));
      }}
      onKeyDown={({ key, currentTarget }) => {
        if (key === 'Enter') commit(currentTarget.value);
      }}
      onBlur={({ currentTarget }) => commit(currentTarget.value)}
    />
  );
}
