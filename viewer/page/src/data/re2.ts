// Regular expressions as the server understands them (RE2), as those of a browser. What only one of
// the two accepts is translated or refused, so that an expression means the same in either.
// https://github.com/google/re2/wiki/Syntax

const MOST_REPETITIONS = 1000;
const SPECIAL = new Set('^$\\.*+?()[]{}|/');
const CONTROLS: Readonly<Record<string, string>> = { a: '\\x07', f: '\\f', n: '\\n', r: '\\r', t: '\\t', v: '\\v' };
// Wrapped, because RE2 accepts `^*`.
const ASSERTIONS: Readonly<Record<string, string>> = { A: '(?:(?<![^]))', z: '(?:(?![^]))', b: '(?:\\b)', B: '(?:\\B)' };

/** Named classes of characters, as pairs of first and last ones. */
const NAMED: Readonly<Record<string, string>> = {
  alnum: '09AZaz', alpha: 'AZaz', ascii: '\x00\x7f', blank: '\t\t  ', cntrl: '\x00\x1f\x7f\x7f', digit: '09', graph: '!~', lower: 'az',
  print: ' ~', punct: '!/:@[`{~', space: '\t\r  ', upper: 'AZ', word: '09AZ__az', xdigit: '09AFaf',
};

/** Throws an Error whose message says what is wrong: 'missing )'. */
export function expressionFromRe2(pattern: string): RegExp {
  const [source, flags] = new Translation(pattern).all();
  try {
    return new RegExp(source, flags);
  } catch (error) {
    // 'Invalid regular expression: /(?:a/u: Nothing to repeat'
    const reason = (error as Error).message.replace(/^Invalid regular expression: (\/.*\/\w*: )?/s, '');
    throw new Error(reason.charAt(0).toLowerCase() + reason.slice(1), { cause: error });
  }
}

interface Group {
  readonly modifiers: string[]; // opened by `(?i)`: they end with the group
  repeated: number; // the most copies of a part of it that RE2 would make
}

class Translation {
  private at = 0;
  private out = '';
  private readonly groups: Group[] = [{ modifiers: [], repeated: 1 }];
  private repeated = 1; // of the last atom

  constructor(private readonly text: string) {}

  all(): readonly [source: string, flags: string] {
    const first = this.take(/\(\?([imsU]+)\)/y);
    while (this.at < this.text.length) this.one();
    if (this.groups.length > 1) throw new Error('missing )');
    this.out += ')'.repeat(this.groups[0]!.modifiers.length);
    return [this.out, [...new Set(`u${first === null ? '' : first[1]!.replaceAll('U', '')}`)].join('')];
  }

  /** Takes what matches the sticky expression here. */
  private take(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.at;
    const match = expression.exec(this.text);
    if (match !== null) this.at += match[0].length;
    return match;
  }

  private one(): void {
    const repetition = this.take(/([*+?]|\{(\d+)(,(\d*))?\})\??/y);
    if (repetition !== null) {
      this.repeat(repetition);
      return;
    }
    const character = String.fromCodePoint(this.text.codePointAt(this.at)!);
    this.repeated = 1;
    if (character === '(') this.open();
    else if (character === ')') this.close();
    else if (character === '|') this.alternative();
    else if (character === '[') this.out += this.classOf();
    else if (character === '\\') this.out += this.escape(false);
    else {
      this.at += character.length;
      if (character === '.') this.out += '.';
      else if (character === '^' || character === '$') this.out += `(?:${character})`;
      else this.out += literal(character, false);
    }
  }

  private repeat([text, , least, range, most]: RegExpExecArray): void {
    const times = Math.max(Number(least ?? 1), Number(most ?? 0));
    this.repeated *= Math.max(1, range !== undefined && most !== '' ? Number(most) : Number(least ?? 1));
    if (times > MOST_REPETITIONS || this.repeated > MOST_REPETITIONS) throw new Error(`more than ${MOST_REPETITIONS} repetitions: ${text}`);
    const group = this.groups.at(-1)!;
    group.repeated = Math.max(group.repeated, this.repeated);
    this.out += text;
  }

  private open(): void {
    if (this.take(/\(\?P<\w+>/y) !== null) {
      this.begin('(');
      return;
    }
    const flags = this.take(/\(\?([imsU]*(?:-[imsU]+)?)([:)])/y);
    if (flags !== null) {
      this.flags(flags[1]!, flags[2]!);
      return;
    }
    if (/\(\?<?[=!]/y.test(this.text.slice(this.at))) throw new Error('what is before or after cannot be tested: (?=…), (?!…), (?<=…), (?<!…)');
    if (this.take(/\((?!\?)/y) === null) throw new Error('unknown kind of group: (?…');
    this.begin('(');
  }

  private flags(letters: string, end: string): void {
    const [on, off] = letters.replaceAll('U', '').split('-'); // U: laziness changes what is matched, not whether
    const modifier = `(?${on}${off === undefined || off === '' ? '' : `-${off}`}:`;
    if (end === ':') {
      this.begin(modifier);
      return;
    }
    this.groups.at(-1)!.modifiers.push(modifier);
    this.out += modifier;
  }

  private begin(text: string): void {
    this.groups.push({ modifiers: [], repeated: 1 });
    this.out += text;
  }

  private close(): void {
    const group = this.groups.pop()!;
    if (this.groups.length === 0) throw new Error('unexpected )');
    ++this.at;
    this.out += ')'.repeat(group.modifiers.length + 1);
    this.repeated = group.repeated;
    const outer = this.groups.at(-1)!;
    outer.repeated = Math.max(outer.repeated, group.repeated);
  }

  // Modifiers hold for all of the alternatives that follow.
  private alternative(): void {
    const { modifiers } = this.groups.at(-1)!;
    ++this.at;
    this.out += `${')'.repeat(modifiers.length)}|${modifiers.join('')}`;
  }

  private classOf(): string {
    let out = this.take(/\[\^?/y)![0];
    let isSet = false; // whether the last one stands for several characters
    for (let first = true; first || this.text[this.at] !== ']'; first = false) {
      if (this.at >= this.text.length) throw new Error('missing ]');
      const named = this.take(/\[:(\^?)(\w+):\]/y);
      if (named !== null) {
        out += namedClass(named[2]!, named[1] === '^');
        isSet = true;
        continue;
      }
      if (this.text[this.at] === '\\') {
        isSet = /\\[dDsSwWpP]/y.test(this.text.slice(this.at));
        out += this.escape(true);
        continue;
      }
      const character = String.fromCodePoint(this.text.codePointAt(this.at)!);
      this.at += character.length;
      const isRange = character === '-' && !first && !isSet && this.text[this.at] !== ']';
      out += isRange ? '-' : literal(character, true);
      isSet = false;
    }
    ++this.at;
    return `${out}]`;
  }

  private escape(inClass: boolean): string {
    if (!inClass) {
      const quoted = this.take(/\\Q(.*?)(?:\\E|$)/sy);
      if (quoted !== null) return quoted[1]!.replace(/[$^\\.*+?()[\]{}|/]/g, '\\$&');
      const other = this.take(/\\([AzbBC])/y)?.[1];
      if (other !== undefined) return ASSERTIONS[other] ?? '[^]';
    }
    const taken = this.take(/\\(?:([dDsSwW])|([afnrtv])|([pP])(?:\{(\^?)(\w+)\}|(\w))|x\{([\da-fA-F]+)\}|x([\da-fA-F]{2})|(0[0-7]{0,2}|[1-7][0-7]{1,2})|([!-/:-@[-`{-~ ]))/y);
    if (taken === null) throw new Error(this.at + 1 === this.text.length ? 'nothing after \\' : `unknown escape: ${this.text.slice(this.at, this.at + 2)}`);
    const [, kind, control, property, isNot, long, short, braced, hex, octal, punctuation] = taken;
    if (kind !== undefined) return `\\${kind}`;
    if (control !== undefined) return CONTROLS[control]!;
    if (property !== undefined) return propertyOf(property === 'P' !== (isNot === '^'), long ?? short!);
    if (punctuation !== undefined) return literal(punctuation, inClass);
    return `\\u{${(octal === undefined ? Number.parseInt(braced ?? hex!, 16) : Number.parseInt(octal, 8)).toString(16)}}`;
  }
}

function literal(character: string, inClass: boolean): string {
  return SPECIAL.has(character) || (inClass && character === '-') ? `\\${character}` : character;
}

function propertyOf(isNot: boolean, name: string): string {
  return `\\${isNot ? 'P' : 'p'}{${name.length <= 2 || name === 'Any' ? '' : 'Script='}${name}}`;
}

function namedClass(name: string, isNot: boolean): string {
  const pairs = NAMED[name];
  if (pairs === undefined) throw new Error(`unknown class: [:${name}:]`);
  const code = (at: number): string => `\\u{${at.toString(16)}}`;
  let out = '';
  let next = 0;
  for (let i = 0; i < pairs.length; i += 2) {
    const [first, last] = [pairs.charCodeAt(i), pairs.charCodeAt(i + 1)];
    if (!isNot) out += `${code(first)}-${code(last)}`;
    else if (first > next) out += `${code(next)}-${code(first - 1)}`;
    next = last + 1;
  }
  return isNot ? `${out}${code(next)}-${code(0x10ffff)}` : out;
}
