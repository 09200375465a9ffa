// interop/arrow/text_dictionary.h
//
// TextDictionary: the different texts of a column, numbered from 0 in the order of their first use.
// They are UTF-8: invalid bytes become replacement characters, as in JSON.
//
// Thread safety: one thread at a time. Memory: each text once.

#ifndef GMT_INTEROP_ARROW_TEXT_DICTIONARY_H_
#define GMT_INTEROP_ARROW_TEXT_DICTIONARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/node_hash_map.h"

namespace gmt::interop {

class TextDictionary {
 public:
  // Returns the number of `text`, which is added if it is new.
  int32_t NumberOf(std::string_view text);
  // The same, faster if one of the latest texts comes again. REQUIRES: the bytes of `text` do not
  // change as long as the dictionary is used.
  int32_t NumberOfLasting(std::string_view text);

  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  struct Known {
    std::string_view text;
    int32_t number = 0;
  };
  absl::node_hash_map<std::string, int32_t> numbers_;
  std::vector<std::string_view> texts_;  // keys of numbers_
  std::array<Known, 64> latest_;         // by address
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_ARROW_TEXT_DICTIONARY_H_
