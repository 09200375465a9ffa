// preload/stacks/python/code_object.h
//
// What a code object says about itself, read straight from memory: names as UTF-8, the first line,
// and the table of lines as it is, to be read later by whoever shows the stack.
//
// Thread safety: any thread, for code objects that a frame of this thread runs. No lock, no
// allocation, no GIL.

#ifndef GMT_PRELOAD_STACKS_PYTHON_CODE_OBJECT_H_
#define GMT_PRELOAD_STACKS_PYTHON_CODE_OBJECT_H_

#include <stddef.h>
#include <stdint.h>

#include <string_view>

#include "preload/stacks/python/interpreter.h"
#include "session/code_table.h"
#include "session/text_table.h"

namespace gmt::preload {

struct CodeView {
  session::LineTable format;
  uint32_t first_line;
  uint64_t name, file;     // texts, for ReadText
  const void* line_table;  // in the interpreter's memory
  uint64_t line_table_bytes;
};

// False: there is no code object at that address.
bool ReadCode(const Interpreter& python, uint64_t code, CodeView* view);

// A text object's characters as UTF-8, at most `capacity` bytes of whole characters, in the
// interpreter's memory where they are ASCII, else in `buffer`. What UTF-8 cannot say (half a
// surrogate pair: a byte of a file name that is no text) becomes U+FFFD.
std::string_view ReadText(const Interpreter& python, uint64_t text, char* buffer, size_t capacity);

// The session's id of the code object; 0 where there is none at that address, or no room.
uint32_t InternCode(const Interpreter& python, uint64_t code, const session::CodeTable& codes,
                    const session::TextTable& texts);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_CODE_OBJECT_H_
