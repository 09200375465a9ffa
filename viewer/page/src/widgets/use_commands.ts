// Commands of a view, in the registry while the view is on the page.

import { useEffect, useRef } from 'preact/hooks';
import type { Command, Commands } from '../state/commands';

/** `list`: always the same ids and keys; what they do is that of the last rendering. */
export function useCommands(commands: Commands, list: readonly Command[]): void {
  const latest = useRef(list);
  latest.current = list;
  useEffect(
    () =>
      commands.register(
        latest.current.map((command, i) => ({
          ...command,
          run: () => latest.current[i]?.run(),
          enabled: () => latest.current[i]?.enabled?.() ?? true,
        })),
      ),
    [commands],
  );
}
