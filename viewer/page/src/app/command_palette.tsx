// Runs a command by its name, or goes to what a recording names: a function, a line, a step, a
// mark, an address, an id.

import { useEffect, useRef, useState } from 'preact/hooks';
import { activity } from '../base/activity';
import { fuzzyScore } from '../base/fuzzy';
import { isEnabled, type Command, type Commands } from '../state/commands';
import { Dialog, Keys } from './dialogs';
import { askedEntries, idEntries, momentEntries, type Entry, type Places } from './search_entries';

const ASK_MS = 150; // after the last letter

/** A command or something else that was found. */
type Option = Entry & { readonly command?: Command };

interface PaletteProps {
  readonly commands: Commands;
  readonly places: Places;
  readonly onClose: () => void;
}

export function Palette({ commands, places, onClose }: PaletteProps) {
  const [query, setQuery] = useState('');
  const [at, setAt] = useState(0);
  const asked = useAsked(query, places);
  const found = optionsOf(query, commands.all(), [...idEntries(query, places), ...asked.entries, ...momentEntries(query, places)]);
  const chosen = Math.min(at, found.length - 1);
  const run = (option: Option | undefined): void => {
    if (option === undefined) return;
    onClose();
    option.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setAt(Math.min(chosen + 1, found.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0));
    else if (event.key === 'Enter') run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Commands and search" onClose={onClose}>
      <input
        type="text" role="combobox" aria-label="Command" aria-expanded="true" aria-controls="palette-list" autofocus
        placeholder="a command, function, file:line, step/3, mark, 0x7f…, stack/7"
        aria-activedescendant={found[chosen] === undefined ? undefined : `palette-${found[chosen].id}`}
        value={query} onKeyDown={onKeyDown}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands" class="palette">
        {found.map((option, i) => <OptionRow key={option.id} option={option} isChosen={i === chosen} onRun={() => run(option)} />)}
      </ul>
      {found.length === 0 && <p class="muted">{asked.isLoading ? 'Searching…' : 'Nothing matches.'}</p>}
    </Dialog>
  );
}

/**
 * Returns what matches, best first: commands whose title has the text, then what was found, then
 * commands that have the letters in that order.
 */
export function optionsOf(query: string, commands: readonly Command[], found: readonly Entry[]): Option[] {
  const text = query.trim().toLowerCase();
  const scored = commands
    .filter((command) => isEnabled(command) && command.id !== 'page.palette')
    .map((command) => ({ command, score: fuzzyScore(query, command.title), isExact: command.title.toLowerCase().includes(text) }))
    .filter((each): each is { command: Command; score: number; isExact: boolean } => each.score !== null)
    .sort((a, b) => b.score - a.score);
  const options = (isExact: boolean): Option[] =>
    scored.filter((each) => each.isExact === isExact).map(({ command }) => ({ id: command.id, kind: '', title: command.title, run: command.run, command }));
  return [...options(true), ...found, ...options(false)];
}

function useAsked(query: string, places: Places): { readonly entries: readonly Entry[]; readonly isLoading: boolean } {
  const [answer, setAnswer] = useState<{ readonly query: string; readonly entries: readonly Entry[] }>({ query: '', entries: [] });
  useEffect(() => {
    const abort = new AbortController();
    const end = activity.begin();
    const take = (entries: readonly Entry[]): void => {
      if (!abort.signal.aborted) setAnswer({ query, entries });
      end();
    };
    const timer = setTimeout(() => {
      // A text that the source refuses, such as half of an expression, finds nothing.
      askedEntries(query, places, abort.signal).then(take, () => take([]));
    }, ASK_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
      end();
    };
  }, [query]);
  return { entries: answer.query === query ? answer.entries : [], isLoading: answer.query !== query };
}

function OptionRow({ option, isChosen, onRun }: { readonly option: Option; readonly isChosen: boolean; readonly onRun: () => void }) {
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isChosen) element.current?.scrollIntoView({ block: 'nearest' });
  }, [isChosen]);
  return (
    <li ref={element} id={`palette-${option.id}`} role="option" aria-selected={isChosen} onClick={onRun}>
      <span>{option.kind !== '' && <span class="muted">{option.kind} </span>}{option.title}</span>
      {option.command !== undefined && <Keys command={option.command} />}
    </li>
  );
}
