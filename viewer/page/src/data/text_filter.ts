// The text of a filter, by the rules of viewer/questions/row_filter.cc: plain text is looked for in either
// case; '/.../' is a regular expression, in which case counts unless it begins with (?i).

import { fileName, placeOfFrame } from './embedded/file_data';
import type { Frame } from './protocol';

/** null: the text is no expression. Throws where it would be one and cannot be read. */
export function expressionOf(text: string): RegExp | null {
  if (text.length <= 2 || !text.startsWith('/') || !text.endsWith('/')) return null;
  const inside = text.slice(1, -1);
  return inside.startsWith('(?i)') ? new RegExp(inside.slice(4), 'iu') : new RegExp(inside, 'u');
}

/** Whether a text has it. Throws as expressionOf does. */
export function textTest(text: string): (part: string) => boolean {
  const expression = expressionOf(text);
  if (expression !== null) return (part) => expression.test(part);
  const needle = text.toLowerCase();
  return (part) => part.toLowerCase().includes(needle);
}

/** Whether it may be the address of a block. */
export function asksAddresses(text: string): boolean {
  return /^(?:0x|\/\^?0x)/i.test(text);
}

/** What of a frame it is looked for in, each by itself. */
export function textsOfFrame(frame: Frame): string[] {
  const { file, library } = frame;
  // What tables by function call it: names of Python alone are not enough.
  const label = file !== '' && library === '' ? `${frame.function} (${fileName(file)})` : frame.function;
  return [frame.function, label, file, placeOfFrame(frame), library];
}
