// Matches the text of a filter by the rules of viewer/questions/row_filter.cc. Plain text matches
// in either case. '/.../' is a regular expression, which is case-sensitive unless it begins with
// (?i). The server's are those of RE2: what only it accepts is refused, and what only the browser
// accepts too.

import { fileName, placeOfFrame } from './embedded/file_data';
import type { Frame } from './protocol';

const MAX_TEXT = 1000; // bytes
const ESCAPES_OF_BOTH = /\\[^1-9cku]/g;
const ONLY_THE_BROWSERS = /\\|\(\?(?:[=!]|<)/; // when those are removed: tests of what is before or after, and references

/**
 * Returns the regular expression, or null if the text is plain. Throws if the expression is
 * invalid.
 */
export function expressionOf(text: string): RegExp | null {
  if (text.length <= 2 || !text.startsWith('/') || !text.endsWith('/')) return null;
  const inside = text.slice(1, -1);
  const expression = inside.startsWith('(?i)') ? new RegExp(inside.slice(4), 'iu') : new RegExp(inside, 'u');
  if (ONLY_THE_BROWSERS.test(inside.replaceAll(ESCAPES_OF_BOTH, ''))) throw new Error('look-around, references and named groups are not supported');
  return expression;
}

/** Returns why a text cannot be looked for, as a sentence, or ''. */
export function errorOfText(text: string): string {
  if (new TextEncoder().encode(text).length > MAX_TEXT) return `Longer than ${MAX_TEXT} bytes.`;
  try {
    expressionOf(text);
    return '';
  } catch (error) {
    // 'Invalid regular expression: /(/u: Unterminated group'
    const reason = (error as Error).message.replace(/^Invalid regular expression: (\/.*\/\w*: )?/s, '');
    return `Not a regular expression: ${reason.charAt(0).toLowerCase()}${reason.slice(1)}.`;
  }
}

/** Returns a test whether a text matches. Throws as expressionOf does. */
export function textTest(text: string): (part: string) => boolean {
  const expression = expressionOf(text);
  if (expression !== null) return (part) => expression.test(part);
  const needle = text.toLowerCase();
  return (part) => part.toLowerCase().includes(needle);
}

/** Returns whether the text may be the address of a block. */
export function asksAddresses(text: string): boolean {
  return /^(?:0x|\/\^?0x)/i.test(text);
}

/** Returns the texts of a frame that are matched, each by itself. */
export function textsOfFrame(frame: Frame): string[] {
  return [frame.function, functionLabel(frame), frame.file, placeOfFrame(frame), frame.library];
}

/** Returns the label in tables by function. For Python the function name alone is not enough. */
export function functionLabel({ function: name, file, library }: Frame): string {
  return file !== '' && library === '' ? `${name} (${fileName(file)})` : name;
}
