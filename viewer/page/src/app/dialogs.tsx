// Help, a presentation of the command registry, and what dialogs share.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { formatHotkey } from '../base/hotkeys';
import type { Command, Commands } from '../state/commands';

interface DialogProps {
  readonly commands: Commands;
  readonly onClose: () => void;
}

export function Help({ commands, onClose }: DialogProps) {
  const groups = new Map<string, Command[]>();
  for (const command of commands.all()) {
    if (command.hotkeys.length > 0) groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  }
  return (
    <Dialog title="Keys" isWide onClose={onClose}>
      <div class="help">
        {[...groups].map(([group, members]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {members.map((command) => (
                <div key={command.id}>
                  <dt><Keys command={command} /></dt>
                  <dd>{titleIn(group, command.title)}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <section>
          <h3>Mouse on the timeline</h3>
          <dl>
            {MOUSE.map(([what, does]) => (
              <div key={what}>
                <dt>{what}</dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </Dialog>
  );
}

/** Returns 'Zoom in on bytes' for 'Timeline: zoom in on bytes' below the heading 'Timeline'. */
export function titleIn(group: string, title: string): string {
  if (!title.startsWith(`${group}: `)) return title;
  const rest = title.slice(group.length + 2);
  return rest.slice(0, 1).toUpperCase() + rest.slice(1);
}

const MOUSE = [
  ['Wheel', 'zoom at the pointer; with Alt, or over the byte axis, zoom in bytes'],
  ['Shift + wheel', 'go earlier or later'],
  ['Drag', 'pan'],
  ['Shift + drag', 'measure and select a range'],
  ['Ctrl + drag', 'zoom into a box'],
  ['Click', 'select a block and put the cursor there'],
  ['Double click', 'show the whole recording'],
] as const;

export function Keys({ command }: { readonly command: Command }) {
  return (
    <span class="keys">
      {command.hotkeys.map((hotkey) => (
        <kbd key={hotkey}>{formatHotkey(hotkey)}</kbd>
      ))}
    </span>
  );
}

interface FrameProps {
  readonly title: string;
  readonly isWide?: boolean; // as wide as the window allows
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

// The browser's own dialog: it traps the focus, restores it, and closes on Escape.
export function Dialog({ title, isWide = false, onClose, children }: FrameProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  // The browser's close event comes a frame later, when the next dialog may be open.
  const isNotified = useRef(false);
  const notifyClosed = (): void => {
    if (!isNotified.current) onClose();
    isNotified.current = true;
  };
  const close = (): void => {
    element.current?.close();
    notifyClosed();
  };
  return (
    <dialog
      ref={element} class={isWide ? 'wide' : undefined} aria-labelledby="dialog-title" onClose={notifyClosed}
      onClick={(event) => {
        if (event.target === element.current) close();
      }}
    >
      <header>
        <h2 id="dialog-title">{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={close}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}
