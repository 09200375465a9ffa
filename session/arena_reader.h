// session/arena_reader.h
//
// The reader's side of the arena (session/arena.h) and of the module log. Returns stacks, texts,
// code objects and modules by value, read from memory that its writer may corrupt at any moment.
//
// Every length is read once into a local variable and checked against the section before the data
// it describes is accessed. Data that fails a check counts as absent; there is no other error.
//
// Thread safety: free functions over memory that may change concurrently. Entries referenced by
// ring records no longer change.

#ifndef GMT_SESSION_ARENA_READER_H_
#define GMT_SESSION_ARENA_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "session/layout.h"
#include "session/session_map.h"

namespace gmt::session {

struct StackFrame {
  enum class Kind {
    kNative,
    kExact,
    kPython
  };  // kExact: address of an instruction, not a return address
  Kind kind = Kind::kNative;
  uint64_t address = 0;      // native: address in memory
  uint32_t code = 0;         // kPython: id of its code object; 0: unknown
  uint32_t instruction = 0;  // kPython: offset in units of 2 bytes, kMaxInstruction: unknown

  bool operator==(const StackFrame&) const = default;
};

struct StackFrames {
  std::vector<StackFrame> frames;  // innermost first
  uint32_t generation = 0;         // of the module log
  uint16_t flags = 0;              // StackFlags
};

// Returns false and leaves *stack unchanged for id 0 and if no valid stack is stored under the id.
bool ReadStack(const SessionMap& session, uint32_t id, StackFrames* stack);

// Returns "" for id 0, for the empty text, and if no valid text is stored under the id.
std::string ReadText(const SessionMap& session, uint64_t id);

struct CodeCopy {
  LineTable format = LineTable::kNone;
  bool line_table_cut = false;
  uint32_t first_line = 0;
  std::string function, file;
  std::string line_table;  // raw bytes
};

// Returns false for id 0 and if no valid code object is stored under the id.
bool ReadCode(const SessionMap& session, uint32_t id, CodeCopy* code);

struct ModuleCopy {
  uint64_t start = 0, end = 0, bias = 0, seen_ns = 0;
  uint32_t generation = 0;
  std::string build_id;  // raw bytes
  std::string path;
};

// Appends the records from number modules->size() on. Records with an empty range are kept (they
// contain no address) so that indexes equal those of the log.
void ReadNewModules(const SessionMap& session, std::vector<ModuleCopy>* modules);

}  // namespace gmt::session

#endif  // GMT_SESSION_ARENA_READER_H_
