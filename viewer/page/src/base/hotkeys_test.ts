import { describe, expect, it } from 'vitest';
import { formatHotkey, matchesHotkey, type KeyPress } from './hotkeys';

const press = (key: string, code: string, held: Partial<KeyPress> = {}): KeyPress => ({
  key, code, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...held,
});

describe('matchesHotkey', () => {
  it('matches letters by position, so that WASD form a cross on a French keyboard too', () => {
    expect(matchesHotkey(press('z', 'KeyW'), 'W')).toBe(true);
    expect(matchesHotkey(press('w', 'KeyZ'), 'W')).toBe(false);
  });
  it('requires exactly the given modifiers', () => {
    expect(matchesHotkey(press('M', 'KeyM', { shiftKey: true }), 'Shift+M')).toBe(true);
    expect(matchesHotkey(press('M', 'KeyM', { shiftKey: true }), 'M')).toBe(false);
    expect(matchesHotkey(press('m', 'KeyM', { ctrlKey: true }), 'M')).toBe(false);
  });
  it('accepts Cmd for Ctrl', () => {
    expect(matchesHotkey(press('P', 'KeyP', { metaKey: true, shiftKey: true }), 'Ctrl+Shift+P')).toBe(true);
  });
  it('matches signs by the character typed, with or without Shift', () => {
    expect(matchesHotkey(press('?', 'Slash', { shiftKey: true }), '?')).toBe(true);
    expect(matchesHotkey(press('?', 'Minus'), '?')).toBe(true);
    expect(matchesHotkey(press('+', 'Equal', { shiftKey: true }), '+')).toBe(true);
  });
  it('matches digits of layouts that need Shift for them', () => {
    expect(matchesHotkey(press('&', 'Digit1'), '1')).toBe(true);
    expect(matchesHotkey(press('1', 'Numpad1'), '1')).toBe(true);
  });
});

describe('formatHotkey', () => {
  it('is readable', () => {
    expect(formatHotkey('Ctrl+Shift+P')).toBe('Ctrl + Shift + P');
    expect(formatHotkey('Shift+ArrowLeft')).toBe('Shift + ←');
    expect(formatHotkey('+')).toBe('+');
  });
});
