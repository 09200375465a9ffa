import { describe, expect, it } from 'vitest';
import { notesOf, readNotes, withNote, writeNotes, type Note } from './notes';

const note = (event: number, text: string, file = 0): Note => ({ file, event, ns: 10 * event, text });

describe('notes on moments', () => {
  it('are in the order of their moments, one for each', () => {
    const notes = withNote(withNote([note(7, 'late')], note(3, 'early')), note(7, 'again'));
    expect(notes.map(({ event, text }) => [event, text])).toEqual([[3, 'early'], [7, 'again']]);
  });

  it('without text are removed', () => expect(withNote([note(3, 'x')], note(3, '  '))).toEqual([]));

  it('are those of a file, and none of a running process', () => {
    const notes = [note(3, 'a', 0), note(4, 'b', 1)];
    expect(notesOf({ notes }, { file: 1 })).toEqual([notes[1]]);
    expect(notesOf({ notes }, { file: 1, live: {} as never })).toEqual([]);
  });

  it('can be read as they are written', () => {
    const notes = [note(3, 'a "quote" & = # ~ _ ü'), note(9, 'b', 2)];
    expect(readNotes(writeNotes(notes))).toEqual(notes);
    expect(writeNotes([])).toBe('');
  });

  it('that are anything else are rejected', () => {
    for (const wrong of ['', '7', '{}', '[[0,1,2]]', '[[0,-1,2,"x"]]', '[[0,1,2,7]]', '[[0,1e999,2,"x"]]', '[0,1,2,"x"]']) expect(readNotes(wrong), wrong).toBeNull();
  });

  it('are no longer than an address can be', () => expect(withNote([], note(1, 'x'.repeat(1000)))[0]!.text).toHaveLength(200));
});
