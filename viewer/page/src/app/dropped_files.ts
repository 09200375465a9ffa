// What to do with files that are dropped on the page. A browser tells a page what a dropped file is called
// and what is in it, not where it lies, and a recording of gigabytes is read by the program and not by
// the page: so the page says which command opens it. Nothing is read and nothing is sent.

export interface Way {
  readonly words: string; // what the command does
  readonly command: string;
}

const RECORDING = /\.(gmt|pickle|pkl|json|jsonl)$/i;
const MAILED = /\.html?$/i;

/** A name as a shell takes it, whatever is in it. */
export function quoted(name: string): string {
  const path = name.startsWith('-') ? `./${name}` : name;
  return /^[\w.,:/@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** `shown`: the path of the recording that the page shows; '' where it has none to compare with. */
export function waysToOpen(names: readonly string[], shown: string): readonly Way[] {
  const files = names.filter((name) => !MAILED.test(name));
  if (files.length === 0) return [];
  const words = files.map(quoted).join(' ');
  const ways: Way[] = [{ words: files.length === 1 ? 'as a page of its own' : 'as one page', command: `gpumemtrace view ${words}` }];
  if (shown !== '') ways.push({ words: 'beside what is shown here, to compare', command: `gpumemtrace view ${quoted(shown)} ${words}` });
  const [file] = files;
  if (file !== undefined && files.length === 1) {
    const page = quoted(`${file.replace(RECORDING, '')}.html`);
    ways.push({ words: 'as a file to mail', command: `gpumemtrace export --format html ${words} -o ${page}` });
  }
  return ways;
}

/** What else is to be said of them. */
export function notesOn(names: readonly string[]): readonly string[] {
  const notes: string[] = [];
  const pages = names.filter((name) => MAILED.test(name));
  if (pages.length > 0) notes.push(`${listed(pages)}: a page already. Open it in a tab of its own.`);
  const strange = names.filter((name) => !MAILED.test(name) && !RECORDING.test(name));
  if (strange.length > 0) notes.push(`${listed(strange)}: not named like a recording (.gmt), a PyTorch snapshot (.pickle) or an event log (.jsonl). The program goes by what is in it.`);
  return notes;
}

function listed(names: readonly string[]): string {
  return names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
}
