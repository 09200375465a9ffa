// session/arena_reader.h
//
// The reader's side of the arena (session/arena.h) and of the module log: stacks, texts, code objects
// and modules by value, out of memory that its writer may scribble over at any moment.
//
// Every length is read once, into a local, and checked against the section before anything behind
// it is touched. What does not fit is "not there"; nothing here can fail in another way.
//
// Thread safety: free functions over memory that changes; an entry that a ring record refers to no
// longer does.

#ifndef GMT_SESSION_ARENA_READER_H_
#define GMT_SESSION_ARENA_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "session/layout.h"
#include "session/session_map.h"

namespace gmt::session {

struct StackFrame {
  enum class Kind { kNative, kExact, kPython };  // kExact: of the instruction, not of a return
  Kind kind = Kind::kNative;
  uint64_t address = 0;      // native: in memory
  uint32_t code = 0;         // kPython: id of its code object; 0: not known
  uint32_t instruction = 0;  // kPython: offset in units of 2 bytes, kMaxInstruction: not known

  bool operator==(const StackFrame&) const = default;
};

struct StackFrames {
  std::vector<StackFrame> frames;  // innermost first
  uint32_t generation = 0;         // of the module log
  uint16_t flags = 0;              // StackFlags
};

// False, with *stack untouched, for id 0 and for an id behind which no stack can lie.
bool ReadStack(const SessionMap& session, uint32_t id, StackFrames* stack);

// Empty for id 0, for an id behind which no text can lie, and for the empty text.
std::string ReadText(const SessionMap& session, uint64_t id);

struct CodeCopy {
  LineTable format = LineTable::kNone;
  bool line_table_cut = false;
  uint32_t first_line = 0;
  std::string function, file;
  std::string line_table;  // raw bytes
};

// False for id 0 and for an id behind which no code object can lie.
bool ReadCode(const SessionMap& session, uint32_t id, CodeCopy* code);

struct ModuleCopy {
  uint64_t start = 0, end = 0, bias = 0, seen_ns = 0;
  uint32_t generation = 0;
  std::string build_id;  // raw bytes
  std::string path;
};

// Appends the records from number modules->size() on. Records with an empty range stay in place
// (nothing lies in them), so that numbers are those of the log.
void ReadNewModules(const SessionMap& session, std::vector<ModuleCopy>* modules);

}  // namespace gmt::session

#endif  // GMT_SESSION_ARENA_READER_H_
