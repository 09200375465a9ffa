#include "session/code_table.h"

#include <cstring>

namespace gmt::session {

uint32_t CodeTable::Intern(const CodeObject& code) const {
  const bool cut = code.line_table_bytes > kMaxLineTable;
  const uint64_t bytes = cut ? kMaxLineTable : code.line_table_bytes;
  const CodeHeader header = {static_cast<uint16_t>(code.format),
                             static_cast<uint16_t>(cut ? kLineTableCut : 0),
                             code.first_line,
                             code.function,
                             code.file,
                             bytes};
  constexpr uint64_t kHeaderWords = sizeof(header) / sizeof(uint64_t);
  const uint64_t words = kHeaderWords + (bytes + 7) / 8;
  ContentHash hash;
  hash.AddBytes(&header, sizeof(header));
  hash.AddBytes(code.line_table, bytes);
  const auto equal = [&](uint64_t place) {
    const uint64_t* entry = arena_.Find(place, words);
    return entry != nullptr && std::memcmp(entry, &header, sizeof(header)) == 0 &&
           (bytes == 0 || std::memcmp(entry + kHeaderWords, code.line_table, bytes) == 0);
  };
  const auto append = [&] {
    const uint64_t place = arena_.Append(words);
    if (place == 0) return place;
    std::memcpy(arena_.at(place), &header, sizeof(header));
    if (bytes != 0) std::memcpy(arena_.at(place + kHeaderWords), code.line_table, bytes);
    return place;
  };
  return index_.Intern(hash.value(), equal, append);
}

}  // namespace gmt::session
