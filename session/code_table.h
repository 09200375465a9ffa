// session/code_table.h
//
// CodeTable: stores every distinct code object of an interpreter once. Objects are identified by
// contents, not by address: a function that is created again keeps its id, and another one at the
// same address gets its own.
//
// Thread safety: as session/intern_index.h.

#ifndef GMT_SESSION_CODE_TABLE_H_
#define GMT_SESSION_CODE_TABLE_H_

#include <cstdint>

#include "session/arena.h"
#include "session/intern_index.h"

namespace gmt::session {

struct CodeObject {
  LineTable format = LineTable::kNone;
  uint32_t first_line = 0;
  uint32_t function = 0, file = 0;   // text ids
  const void* line_table = nullptr;  // owned by the caller; read only during the call
  uint64_t line_table_bytes = 0;     // truncated to kMaxLineTable, with a flag
};

class CodeTable {
 public:
  constexpr CodeTable() = default;
  CodeTable(const InternIndex& index, const Arena& arena) : index_(index), arena_(arena) {}

  // Returns the id of the code object, or 0 if there is no room.
  uint32_t Intern(const CodeObject& code) const;

 private:
  InternIndex index_;
  Arena arena_;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_CODE_TABLE_H_
