// symbols/python_lines.h
//
// Decodes the source line of a Python bytecode instruction from the line table that CPython keeps
// in the code object. There are three formats, each decoded like the interpreter does, so that the
// result is the same for every instruction:
//
//   CPython 3.6-3.9  co_lnotab     pairs (u8 bytes of code, s8 lines): increments of both
//   CPython 3.10     co_linetable  pairs (u8 bytes of code, s8 lines): the line increment, then the
//                                  extent of the code there; -128 lines: code without a line
//   CPython 3.11-    co_linetable  one entry per location: 1kkkkuuu with kind k and u + 1 units of
//                                  code, then data depending on the kind, in bytes below 0x80
//
// Sources: CPython's Objects/lnotab_notes.txt (3.9, 3.10), Objects/locations.md (3.11 to 3.13,
// InternalDocs/code_objects.md after that).
//
// A table comes from another process's memory and may be truncated or damaged. If it cannot be
// decoded the result is 0, never a guessed line, and no byte outside of `table` is read.
// Truncation of co_lnotab by whole pairs cannot be detected, because its last line extends to the
// end of the code.
//
// Thread safety: pure function. Cost: one pass over the table up to `offset`; no allocation.

#ifndef GMT_SYMBOLS_PYTHON_LINES_H_
#define GMT_SYMBOLS_PYTHON_LINES_H_

#include <cstdint>
#include <string_view>

namespace gmt::symbols {

enum class PythonLineTable { kLnotab39, kLineTable310, kLocations311 };

// Returns the line of the instruction at `offset`, counted in units of 2 bytes; 0 if unknown.
// `first_line` is co_firstlineno.
uint32_t PythonLine(PythonLineTable format, uint32_t first_line, std::string_view table,
                    uint32_t offset);

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_PYTHON_LINES_H_
