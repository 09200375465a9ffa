// A labelled select and a labelled check box. Both are native elements, which keyboards and screen
// readers support.

export interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  /** Value, title, and why it cannot be chosen; '' or nothing: it can. */
  readonly options: readonly (readonly [T, string, string?])[];
  readonly onChoose: (value: T) => void;
}

export function Choice<T extends string>({ label, value, options, onChoose }: ChoiceProps<T>) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select
        value={value}
        onChange={(event) => {
          const chosen = options.find(([option]) => option === event.currentTarget.value);
          if (chosen !== undefined) onChoose(chosen[0]);
        }}
      >
        {options.map(([option, title, why = '']) => (
          <option key={option} value={option} selected={option === value} disabled={why !== ''}>
            {why === '' ? title : `${title} (${why})`}
          </option>
        ))}
      </select>
    </label>
  );
}

export interface ToggleProps {
  readonly label: string;
  readonly on: boolean;
  readonly disabled?: boolean;
  readonly onToggle: (on: boolean) => void;
}

export function Toggle({ label, on, disabled, onToggle }: ToggleProps) {
  return (
    <label class="choice">
      <input type="checkbox" checked={on} disabled={disabled} onChange={(event) => onToggle(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}
