// preload/stacks/python/code_object.h
//
// Reads the description of a code object directly from memory: names as UTF-8, the first line, and
// the raw line table, which is decoded when the stack is displayed.
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
  uint64_t name, file;     // text objects, for ReadText
  const void* line_table;  // in the interpreter's memory
  uint64_t line_table_bytes;
};

// Returns false if there is no code object at that address.
bool ReadCode(const Interpreter& python, uint64_t code, CodeView* view);

// Returns a text object's characters as UTF-8, limited to `capacity` bytes of whole characters: in
// the interpreter's memory if they are ASCII, otherwise in `buffer`. What UTF-8 cannot represent
// (an unpaired surrogate, which stands for an undecodable byte of a file name) becomes U+FFFD.
std::string_view ReadText(const Interpreter& python, uint64_t text, char* buffer, size_t capacity);

// Returns the session's id of the code object; 0 if there is none at that address, or no room.
uint32_t InternCode(const Interpreter& python, uint64_t code, const session::CodeTable& codes,
                    const session::TextTable& texts);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_STACKS_PYTHON_CODE_OBJECT_H_
