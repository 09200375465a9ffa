// The only registry of commands that a user can run by name or key. The key handler, the help and
// the command palette use it. A view registers its commands while it is shown.

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

  /**
   * Returns the function that removes them. If two commands share a key, the one registered later
   * gets it.
   */
  register(commands: readonly Command[]): () => void {
    this.sets.push(commands);
    return () => {
      const at = this.sets.indexOf(commands);
      if (at >= 0) this.sets.splice(at, 1);
    };
  }

  /** Returns the commands in order of registration; of several with one id, the latest. */
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

  /** Runs the command with that id. Returns false if there is none or it is disabled. */
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
