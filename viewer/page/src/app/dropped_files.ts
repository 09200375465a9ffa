// Suggests commands for files that are dropped on the page. A browser gives a page the name and
// content of a dropped file, but not its path. The page cannot hold a recording of gigabytes; the
// program reads it. So the page only names the command that opens the file: it reads nothing and
// sends nothing.

export interface Way {
  readonly words: string; // what the command does
  readonly command: string;
}

const RECORDING = /\.(gmt|pickle|pkl|json|jsonl)$/i;
const HTML_PAGE = /\.html?$/i;

/** Quotes a name for a shell, whatever characters it has. */
export function quoted(name: string): string {
  const path = name.startsWith('-') ? `./${name}` : name;
  return /^[\w.,:/@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/**
 * Returns the commands that open `names`. `shown` is the path of the recording that the page shows,
 * or '' if there is none to compare with.
 */
export function waysToOpen(names: readonly string[], shown: string): readonly Way[] {
  const files = names.filter((name) => !HTML_PAGE.test(name));
  if (files.length === 0) return [];
  const words = files.map(quoted).join(' ');
  const ways: Way[] = [{ words: files.length === 1 ? 'on its own page' : 'on one page', command: `gpumemtrace view ${words}` }];
  if (shown !== '') ways.push({ words: 'compared with the recording shown here', command: `gpumemtrace view ${quoted(shown)} ${words}` });
  const [file] = files;
  if (file !== undefined && files.length === 1) {
    const page = quoted(`${file.replace(RECORDING, '')}.html`);
    ways.push({ words: 'as a standalone HTML file', command: `gpumemtrace export --format html ${words} -o ${page}` });
  }
  return ways;
}

/** Returns remarks about files that are unlikely to be recordings. */
export function notesOn(names: readonly string[]): readonly string[] {
  const notes: string[] = [];
  const pages = names.filter((name) => HTML_PAGE.test(name));
  if (pages.length > 0) notes.push(`${listed(pages)}: already a page. Open it in a browser tab.`);
  const strange = names.filter((name) => !HTML_PAGE.test(name) && !RECORDING.test(name));
  if (strange.length > 0) notes.push(`${listed(strange)}: no extension of a recording (.gmt), a PyTorch snapshot (.pickle) or an event log (.jsonl). The program recognizes files by their content.`);
  return notes;
}

function listed(names: readonly string[]): string {
  return names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`;
}
