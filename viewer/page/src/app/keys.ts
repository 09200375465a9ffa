// Maps keys to commands. A text field keeps its keys. A widget that has used a key (preventDefault)
// keeps it from the commands.

import type { KeyPress } from '../base/hotkeys';
import type { Commands } from '../state/commands';

export function listenToKeys(commands: Commands): void {
  window.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const isModified = event.ctrlKey || event.metaKey || event.key === 'Escape';
    if (!isModified && keepsKey(fieldOf(event.target), event)) return;
    if (document.querySelector('dialog[open]') !== null) return;
    const command = commands.find(event);
    if (command === null) return;
    event.preventDefault();
    command.run();
  });
}

/**
 * What has the focus: 'text', 'select', the type of another input, or '' for an element that takes
 * no keys.
 */
export type Field = string;

function fieldOf(target: EventTarget | null): Field {
  if (target instanceof HTMLTextAreaElement) return 'text';
  if (target instanceof HTMLSelectElement) return 'select';
  return target instanceof HTMLInputElement ? target.type : '';
}

const SLIDER_KEYS = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End', 'PageUp', 'PageDown'];

/** Returns whether a field uses a key. A check box or a slider uses no letters. */
export function keepsKey(field: Field, { key }: Pick<KeyPress, 'key'>): boolean {
  switch (field) {
    case '':
      return false;
    case 'checkbox':
    case 'button':
      return key === ' ';
    case 'range':
      return SLIDER_KEYS.includes(key);
    default:
      return true;
  }
}
