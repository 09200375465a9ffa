// The list from which lanes are chosen: each of them, or a heap in every recording.

import type { FileMeta } from '../../data/protocol';
import type { LanesOptions } from '../../state/state';
import { titleOfFile } from '../../state/scope';
import { Toggle } from '../../widgets/choice';
import { allLanes, heapTitle, shownLanes, withShown, type LaneEntry } from './lane_list';

interface LaneChooserProps {
  readonly files: readonly FileMeta[];
  readonly options: LanesOptions;
  readonly onChange: (change: Partial<LanesOptions>) => void;
}

export function LaneChooser({ files, options, onChange }: LaneChooserProps) {
  const all = allLanes(files);
  const shown = shownLanes(files, options);
  const show = (lanes: readonly LaneEntry[], isShown: boolean): void =>
    onChange({ toggled: withShown(files, options, lanes.map(({ id }) => id), isShown) });
  const heaps = new Map<string, LaneEntry[]>();
  for (const entry of all) if (entry.lane !== null) heaps.set(heapTitle(entry.lane), [...(heaps.get(heapTitle(entry.lane)) ?? []), entry]);
  return (
    <details
      class="lane-chooser"
      onFocusOut={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) event.currentTarget.open = false;
      }}
    >
      <summary>{`Lanes: ${shown.size} of ${all.length}`}</summary>
      <div class="lane-choices" tabIndex={-1}>
        {files.length > 1 && (
          <fieldset>
            <legend>In every recording</legend>
            {[...heaps].map(([title, lanes]) => (
              <Toggle key={title} label={title} on={lanes.every(({ id }) => shown.has(id))} onToggle={(on) => show(lanes, on)} />
            ))}
          </fieldset>
        )}
        {files.map((file) => (
          <fieldset key={file.file}>
            <legend>{titleOfFile(file)}</legend>
            {all.filter((entry) => entry.file === file).map((entry) => (
              <Toggle key={entry.id} label={entry.lane?.label ?? 'nothing to show'} on={shown.has(entry.id)} onToggle={(on) => show([entry], on)} />
            ))}
          </fieldset>
        ))}
        <button type="button" onClick={() => onChange({ toggled: [] })}>{files.length > 1 ? 'One per recording' : 'All'}</button>
      </div>
    </details>
  );
}
