// The one registry of what a user can do by name or key: it feeds the keys' handler, help and the
// command palette. Views add theirs while they are on the page.

import { matchesHotkey, type Hotkey, type KeyPress } from '../base/hotkeys';

export interface Command {
  readonly id: string; // 'timeline.zoom_in'
  readonly title: string; // 'Zoom in'
  readonly group: string; // heading in help
  readonly hotkeys: readonly Hotkey[];
  readonly run: () => void;
  readonly enabled?: () => boolean;
}

export class Commands {
  private readonly sets: (readonly Command[])[] = [];

  /** Returns what takes them away. Of two commands with one key the one registered later has it. */
  register(commands: readonly Command[]): () => void {
    this.sets.push(commands);
    return () => {
      const at = this.sets.indexOf(commands);
      if (at >= 0) this.sets.splice(at, 1);
    };
  }

  /** In order of registration; of one id the latest. */
  all(): readonly Command[] {
    const byId = new Map<string, Command>();
    for (const set of this.sets) for (const command of set) byId.set(command.id, command);
    return [...byId.values()];
  }

  find(press: KeyPress): Command | null {
    for (const set of [...this.sets].reverse()) {
      const found = set.find((each) => isEnabled(each) && each.hotkeys.some((hotkey) => matchesHotkey(press, hotkey)));
      if (found !== undefined) return found;
    }
    return null;
  }

  /** Whether a command of that id could run, and did. */
  run(id: string): boolean {
    const command = this.all().find((each) => each.id === id);
    if (command === undefined || !isEnabled(command)) return false;
    command.run();
    return true;
  }
}

export function isEnabled(command: Command): boolean {
  return command.enabled === undefined || command.enabled();
}
