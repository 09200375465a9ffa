// Matches the text of a filter by the rules of viewer/questions/row_filter.cc. Plain text matches
// in either case. '/.../' is a regular expression of RE2, which is case-sensitive unless it begins
// with (?i).

import { fileName, placeOfFrame } from './embedded/file_data';
import type { Frame } from './protocol';
import { expressionFromRe2 } from './re2';

const MAX_TEXT = 1000; // bytes

/**
 * Returns the regular expression, or null if the text is plain. Throws if the expression is
 * invalid.
 */
export function expressionOf(text: string): RegExp | null {
  if (text.length <= 2 || !text.startsWith('/') || !text.endsWith('/')) return null;
  return expressionFromRe2(text.slice(1, -1));
}

/** Returns why a text cannot be looked for, as a sentence, or ''. */
export function errorOfText(text: string): string {
  if (new TextEncoder().encode(text).length > MAX_TEXT) return `Longer than ${MAX_TEXT} characters.`;
  try {
    expressionOf(text);
    return '';
  } catch (error) {
    return `Not a regular expression: ${(error as Error).message}.`;
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
