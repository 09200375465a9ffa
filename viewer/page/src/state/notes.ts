// Notes that a user writes on moments. They are part of the address, so that a link shows them; a
// recording is never changed.

import type { FileMeta } from '../data/protocol';

export interface Note {
  readonly file: number;
  readonly event: number;
  readonly ns: number;
  readonly text: string;
}

const LONGEST = 200; // letters; an address has little room

/**
 * Returns the notes of a file, in their order. A running process has none, because its events are
 * renumbered.
 */
export function notesOf({ notes }: { readonly notes: readonly Note[] }, file: Pick<FileMeta, 'file' | 'live'>): readonly Note[] {
  return file.live === undefined ? notes.filter((note) => note.file === file.file) : [];
}

/** Returns the notes with `note` instead of the one on its moment; a note without text removes that. */
export function withNote(notes: readonly Note[], note: Note): readonly Note[] {
  const text = note.text.trim().slice(0, LONGEST);
  const others = notes.filter(({ file, event }) => file !== note.file || event !== note.event);
  if (text === '') return others;
  return [...others, { ...note, text }].sort((a, b) => a.file - b.file || a.event - b.event);
}

export function writeNotes(notes: readonly Note[]): string {
  return notes.length === 0 ? '' : JSON.stringify(notes.map(({ file, event, ns, text }) => [file, event, ns, text]));
}

/** Returns null if `written` is not what writeNotes returns. */
export function readNotes(written: string): readonly Note[] | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(written);
  } catch {
    return null;
  }
  if (!Array.isArray(parsed)) return null;
  let notes: readonly Note[] = [];
  for (const entry of parsed as readonly unknown[]) {
    if (!Array.isArray(entry) || entry.length !== 4) return null;
    const [file, event, ns, text] = entry as readonly unknown[];
    if (!isCount(file) || !isCount(event) || !isCount(ns) || typeof text !== 'string') return null;
    notes = withNote(notes, { file, event, ns, text });
  }
  return notes;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
