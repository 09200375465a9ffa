// Handles files dropped on the page. Without this the browser would leave the page to show the
// file, and the program that serves the page would end.

import { useEffect } from 'preact/hooks';
import { copyText } from '../views/details/copy';
import { Dialog } from './dialogs';
import { notesOn, waysToOpen } from './dropped_files';

/** Calls `onDrop` with the names of files that are dropped anywhere on the page. */
export function useDroppedFiles(onDrop: (names: readonly string[]) => void): void {
  useEffect(() => {
    const take = (event: DragEvent): void => {
      if (event.dataTransfer?.types.includes('Files') !== true) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = 'link';
      if (event.type === 'drop') onDrop([...event.dataTransfer.files].map((file) => file.name));
    };
    for (const type of ['dragenter', 'dragover', 'drop'] as const) addEventListener(type, take);
    return () => {
      for (const type of ['dragenter', 'dragover', 'drop'] as const) removeEventListener(type, take);
    };
  }, []);
}

interface Props {
  readonly names: readonly string[];
  readonly shown: string; // path of the recording that is shown; '' for a standalone file
  readonly announce: (text: string) => void;
  readonly onClose: () => void;
}

export function DroppedFiles({ names, shown, announce, onClose }: Props) {
  const ways = waysToOpen(names, shown);
  const copy = (text: string): void => {
    void copyText(text).then((isDone) => announce(isDone ? 'Copied' : 'The browser did not let the page copy'));
  };
  return (
    <Dialog title={names.length === 1 ? `To open ${names[0]!}` : `To open ${names.length} files`} onClose={onClose}>
      {notesOn(names).map((note) => <p key={note}>{note}</p>)}
      {ways.length > 0 && (
        <>
          <p>The browser does not give a page the path of a dropped file, so nothing was opened or sent. Run this in the file's folder:</p>
          <dl class="ways">
            {ways.map(({ words, command }) => (
              <div key={command}>
                <dt>{words}</dt>
                <dd>
                  <code>{command}</code>
                  <button type="button" aria-label={`Copy the command: ${words}`} onClick={() => copy(command)}>Copy</button>
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </Dialog>
  );
}
