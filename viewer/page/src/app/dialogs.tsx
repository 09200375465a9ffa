// Help and the command palette: two presentations of the command registry.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { fuzzyScore } from '../base/fuzzy';
import { formatHotkey } from '../base/hotkeys';
import { isEnabled, type Command, type Commands } from '../state/commands';

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
    <Dialog title="Keys" onClose={onClose}>
      <div class="help">
        {[...groups].map(([group, members]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {members.map((command) => (
                <div key={command.id}>
                  <dt><Keys command={command} /></dt>
                  <dd>{command.title}</dd>
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

const MOUSE = [
  ['Wheel', 'zoom at the pointer; with Alt, or over the byte axis, zoom in bytes'],
  ['Shift + wheel', 'go earlier or later'],
  ['Drag', 'pan'],
  ['Shift + drag', 'measure and select a range'],
  ['Ctrl + drag', 'zoom into a box'],
  ['Click', 'select a block and put the cursor there'],
  ['Double click', 'show the whole recording'],
] as const;

export function Palette({ commands, onClose }: DialogProps) {
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const found = commands
    .all()
    .filter((command) => isEnabled(command) && command.id !== 'page.palette')
    .map((command) => ({ command, score: fuzzyScore(query, command.title) }))
    .filter((each): each is { command: Command; score: number } => each.score !== null)
    .sort((a, b) => b.score - a.score);
  const chosen = Math.min(at, found.length - 1);
  const run = (command: Command | undefined): void => {
    if (command === undefined) return;
    onClose();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setAt(Math.min(chosen + 1, found.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0));
    else if (event.key === 'Enter') run(found[chosen]?.command);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Commands" onClose={onClose}>
      <input
        type="text" role="combobox" aria-label="Command" aria-expanded="true" aria-controls="palette-list" autofocus
        aria-activedescendant={found[chosen] === undefined ? undefined : `palette-${found[chosen].command.id}`}
        value={query} onKeyDown={onKeyDown}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands" class="palette">
        {found.map(({ command }, i) => (
          <Option key={command.id} command={command} isChosen={i === chosen} onRun={() => run(command)} />
        ))}
      </ul>
      {found.length === 0 && <p class="muted">No matching command.</p>}
    </Dialog>
  );
}

function Option({ command, isChosen, onRun }: { readonly command: Command; readonly isChosen: boolean; readonly onRun: () => void }) {
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isChosen) element.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  return (
    <li ref={element} id={`palette-${command.id}`} role="option" aria-selected={isChosen} onClick={onRun}>
      <span>{command.title}</span> <Keys command={command} />
    </li>
  );
}

function Keys({ command }: { readonly command: Command }) {
  return (
    <span class="keys">
      {command.hotkeys.map((hotkey) => (
        <kbd key={hotkey}>{formatHotkey(hotkey)}</kbd>
      ))}
    </span>
  );
}

// The browser's own dialog: it traps the focus, restores it, and closes on Escape.
export function Dialog({ title, onClose, children }: { readonly title: string; readonly onClose: () => void; readonly children: ComponentChildren }) {
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
      ref={element} aria-labelledby="dialog-title" onClose={notifyClosed}
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
