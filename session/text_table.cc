#include "session/text_table.h"

#include <cstring>

#include "session/slice.h"

namespace gmt::session {

namespace {

uint64_t HashOf(std::string_view text) {
  ContentHash hash;
  hash.AddBytes(text.data(), text.size());
  return hash.value();
}

uint64_t WordsOf(std::string_view text) { return 1 + (text.size() + 7) / 8; }

}  // namespace

auto TextTable::EqualTo(std::string_view text) const {
  return [this, text](uint64_t place) {
    const uint64_t* entry = arena_.Find(place, WordsOf(text));
    return entry != nullptr && entry[0] == text.size() &&
           (text.empty() || std::memcmp(entry + 1, text.data(), text.size()) == 0);
  };
}

uint32_t TextTable::Find(std::string_view text) const {
  text = Slice(text, 0, kMaxTextLength);
  return index_.Find(HashOf(text), EqualTo(text));
}

uint32_t TextTable::Intern(std::string_view text) const {
  text = Slice(text, 0, kMaxTextLength);
  const auto append = [&] {
    const uint64_t place = arena_.Append(WordsOf(text));
    if (place == 0) return place;
    *arena_.at(place) = text.size();
    if (!text.empty()) std::memcpy(arena_.at(place + 1), text.data(), text.size());
    return place;
  };
  return index_.Intern(HashOf(text), EqualTo(text), append);
}

}  // namespace gmt::session
