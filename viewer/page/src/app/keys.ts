// Keys to commands. A field in which one types keeps its keys, and a widget that has used a key
// (preventDefault) has it alone.

import type { Commands } from '../state/commands';

export function listenToKeys(commands: Commands): void {
  window.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const isModified = event.ctrlKey || event.metaKey || event.key === 'Escape';
    if (!isModified && takesText(event.target)) return;
    if (document.querySelector('dialog[open]') !== null) return;
    const command = commands.find(event);
    if (command === null) return;
    event.preventDefault();
    command.run();
  });
}

function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
