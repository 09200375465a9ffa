// symbols/python_lines.h
//
// The source line of an instruction of Python bytecode, from the line table that CPython keeps in
// the code object. Three formats, each decoded as the interpreter itself does, so that the answers
// are the same for every instruction:
//
//   CPython 3.6-3.9  co_lnotab     pairs (u8 bytes of code, s8 lines): how far both go on
//   CPython 3.10     co_linetable  pairs (u8 bytes of code, s8 lines): the lines first, then the code
//                                  that stands there; -128 lines: code without a line
//   CPython 3.11-    co_linetable  one entry per location: 1kkkkuuu, kind k and u + 1 units of code,
//                                  then what the kind needs, in bytes below 0x80
//
// Sources: CPython's Objects/lnotab_notes.txt (3.9, 3.10), Objects/locations.md (3.11 to 3.13,
// InternalDocs/code_objects.md after that).
//
// A table comes out of another process's memory and may be cut or damaged: what cannot be read gives
// 0, never a line that was guessed, and no byte outside of `table` is read. A table of pairs cannot
// tell that whole pairs are missing in co_lnotab, whose last line holds to the end of the code.
//
// Thread safety: pure function. Cost: a pass over the table up to `offset`; no memory.

#ifndef GMT_SYMBOLS_PYTHON_LINES_H_
#define GMT_SYMBOLS_PYTHON_LINES_H_

#include <cstdint>
#include <string_view>

namespace gmt::symbols {

enum class PythonLineTable { kLnotab39, kLineTable310, kLocations311 };

// The line of the instruction at `offset`, counted in units of 2 bytes; 0: none is known.
// `first_line` is co_firstlineno.
uint32_t PythonLine(PythonLineTable format, uint32_t first_line, std::string_view table,
                    uint32_t offset);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_PYTHON_LINES_H_
