// Chooses by what the rows of the breakdown are divided, and in which order.

import { BY, titleOf } from './range_columns';
import { changedLevels, type By } from './range_tree';

interface LevelsProps {
  readonly levels: readonly By[];
  readonly onChange: (levels: readonly By[]) => void;
}

export function Levels({ levels, onChange }: LevelsProps) {
  const order = [...levels, ...BY.map(([by]) => by).filter((by) => !levels.includes(by))];
  const change = (by: By, how: 'toggle' | 'up' | 'down'): void => onChange(changedLevels(levels, by, how));
  return (
    <details class="breakdown-levels">
      <summary>Levels: {levels.map(titleOf).join(' › ')}</summary>
      <ol>
        {order.map((by) => {
          const at = levels.indexOf(by);
          return (
            <li key={by}>
              <label class="choice">
                <input type="checkbox" checked={at >= 0} disabled={at >= 0 && levels.length === 1} onChange={() => change(by, 'toggle')} />
                <span>{titleOf(by)}</span>
              </label>
              <button type="button" class="plain" aria-label={`Move ${titleOf(by)} up`} disabled={at < 1} onClick={() => change(by, 'up')}>↑</button>
              <button type="button" class="plain" aria-label={`Move ${titleOf(by)} down`} disabled={at < 0 || at === levels.length - 1} onClick={() => change(by, 'down')}>↓</button>
            </li>
          );
        })}
      </ol>
    </details>
  );
}
