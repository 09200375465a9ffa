// Keys as typed strings: 'Shift+M', 'Ctrl+Shift+P', '?', 'ArrowLeft'.
//
// Letters mean positions on the keyboard (KeyboardEvent.code), so that WASD form a cross on every
// layout. Digits and signs mean the character typed. 'Ctrl' is Cmd on a Mac.

type Letter =
  | 'A' | 'B' | 'C' | 'D' | 'E' | 'F' | 'G' | 'H' | 'I' | 'J' | 'K' | 'L' | 'M'
  | 'N' | 'O' | 'P' | 'Q' | 'R' | 'S' | 'T' | 'U' | 'V' | 'W' | 'X' | 'Y' | 'Z';
type Digit = '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9';
type Named = 'ArrowLeft' | 'ArrowRight' | 'ArrowUp' | 'ArrowDown' | 'Home' | 'End' | 'PageUp' | 'PageDown' | 'Enter' | 'Escape' | 'Space';
type Sign = '+' | '-' | '?' | '/' | ',' | '.' | '[' | ']' | '<' | '>';
type Modifier = '' | 'Ctrl+' | 'Shift+' | 'Alt+' | 'Ctrl+Shift+';

export type Hotkey = `${Modifier}${Letter | Digit | Named}` | Sign;

/** The part of a KeyboardEvent that names its key. */
export interface KeyPress {
  readonly key: string;
  readonly code: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
}

interface Parsed {
  readonly ctrl: boolean;
  readonly shift: boolean;
  readonly alt: boolean;
  readonly key: string;
}

export function parseHotkey(hotkey: Hotkey): Parsed {
  const modifiers = /^(?:(?:Ctrl|Shift|Alt)\+)*/.exec(hotkey)?.[0] ?? '';
  const key = hotkey.slice(modifiers.length);
  return {
    ctrl: modifiers.includes('Ctrl'),
    shift: modifiers.includes('Shift'),
    alt: modifiers.includes('Alt'),
    key,
  };
}

export function matchesHotkey(press: KeyPress, hotkey: Hotkey): boolean {
  const { ctrl, shift, alt, key } = parseHotkey(hotkey);
  if ((press.ctrlKey || press.metaKey) !== ctrl || press.altKey !== alt) return false;
  if (/^[A-Z]$/.test(key)) return press.shiftKey === shift && press.code === `Key${key}`;
  if (/^\d$/.test(key)) return press.shiftKey === shift && (press.key === key || press.code === `Digit${key}`);
  if (key.length > 1) return press.shiftKey === shift && (key === 'Space' ? press.key === ' ' : press.key === key);
  return press.key === key; // signs need Shift on some layouts and not on others
}

/** Formats 'Shift+ArrowLeft' as 'Shift + ←', for help. */
export function formatHotkey(hotkey: Hotkey): string {
  const { ctrl, shift, alt, key } = parseHotkey(hotkey);
  const names: Readonly<Record<string, string>> = {
    ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', Escape: 'Esc', PageUp: 'Page up', PageDown: 'Page down',
  };
  return [ctrl ? 'Ctrl' : '', shift ? 'Shift' : '', alt ? 'Alt' : '', names[key] ?? key].filter((part) => part !== '').join(' + ');
}
