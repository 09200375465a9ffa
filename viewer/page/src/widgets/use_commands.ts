// Registers the commands of a view while the view is on the page.

import { useEffect, useRef } from 'preact/hooks';
import type { Command, Commands } from '../state/commands';

/**
 * `list` must always have the same ids and keys. Each command runs as defined by the last
 * rendering.
 */
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
