#include "session/text_table.h"

#include <cstring>

#include "session/slice.h"

namespace gmt::session {

uint32_t TextTable::Intern(std::string_view text) const {
  text = Slice(text, 0, kMaxTextLength);
  ContentHash hash;
  hash.AddBytes(text.data(), text.size());
  const uint64_t words = 1 + (text.size() + 7) / 8;
  const auto equal = [&](uint64_t place) {
    const uint64_t* entry = arena_.Find(place, words);
    return entry != nullptr && entry[0] == text.size() &&
           (text.empty() || std::memcmp(entry + 1, text.data(), text.size()) == 0);
  };
  const auto append = [&] {
    const uint64_t place = arena_.Append(words);
    if (place == 0) return place;
    *arena_.at(place) = text.size();
    if (!text.empty()) std::memcpy(arena_.at(place + 1), text.data(), text.size());
    return place;
  };
  return index_.Intern(hash.value(), equal, append);
}

}  // namespace gmt::session
