// session/text_table.h
//
// TextTable: stores every distinct name once.
//
// Thread safety: as session/intern_index.h.

#ifndef GMT_SESSION_TEXT_TABLE_H_
#define GMT_SESSION_TEXT_TABLE_H_

#include <cstdint>
#include <string_view>

#include "session/arena.h"
#include "session/intern_index.h"

namespace gmt::session {

class TextTable {
 public:
  constexpr TextTable() = default;
  TextTable(const InternIndex& index, const Arena& arena) : index_(index), arena_(arena) {}

  // Returns the id of the text, or 0 if there is no room. Truncates texts to kMaxTextLength.
  uint32_t Intern(std::string_view text) const;
  // Returns the id of the text if it is already in the table, otherwise 0.
  uint32_t Find(std::string_view text) const;

 private:
  auto EqualTo(std::string_view text) const;

  InternIndex index_;
  Arena arena_;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_TEXT_TABLE_H_
