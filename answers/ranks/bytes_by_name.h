// answers/ranks/bytes_by_name.h
//
// BytesByName: how many bytes each rank has under a name (a line, a library), and how they are
// spread over all ranks, to which a rank without the name contributes 0. A name that many ranks
// have is stored once, so that ten thousand ranks fit into memory.
//
// Thread safety: const methods from any thread.

#ifndef GMT_ANSWERS_RANKS_BYTES_BY_NAME_H_
#define GMT_ANSWERS_RANKS_BYTES_BY_NAME_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gmt::answers {

// How a value is spread over the ranks.
struct Spread {
  uint64_t least = 0, median = 0, most = 0;  // of two values in the middle, the lower one
};
// REQUIRES: `values` is not empty.
Spread SpreadOf(std::vector<uint64_t> values);

class BytesByName {
 public:
  BytesByName() = default;
  BytesByName(BytesByName&&) = default;  // not copied: it refers to its own names
  // Rows are numbered from 0. REQUIRES: FindMedians() has not been called.
  void AddRow(const std::map<std::string, uint64_t>& bytes);
  void FindMedians();

  struct Entry {
    const std::string* name;
    uint64_t bytes, median;
  };
  // Returns, in the order of names, those of which the row has bytes or whose median is not 0.
  // REQUIRES: FindMedians() has been called.
  std::vector<Entry> EntriesOf(size_t row) const;
  // REQUIRES: FindMedians() has been called.
  std::map<std::string, Spread> Spreads() const;

 private:
  using IdBytes = std::pair<uint32_t, uint64_t>;

  std::deque<std::string> names_;  // by id; its strings never move
  absl::flat_hash_map<std::string_view, uint32_t> ids_;
  std::vector<std::vector<IdBytes>> rows_;  // in the order of names
  std::vector<uint64_t> medians_;           // by id
  std::vector<uint32_t> common_;            // ids with a median, in the order of names
};

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_RANKS_BYTES_BY_NAME_H_
