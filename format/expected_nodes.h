// format/expected_nodes.h
//
// ExpectedNodes: which class of autograd node a stack of the forward pass makes: nearly always the
// one that it made last, so that the file need not hold the class of each node but the difference
// to this, which is 0.
//
//   event                          name   expected   in the file
//   (chunk begins)                               0
//   role, stack 7, MulBackward0       3          0             3
//   role, stack 9, AddBackward0       5          0             5
//   role, stack 7, MulBackward0       3          3             0
//
// Anew in each chunk, so that a chunk that is lost takes no name of another with it.
//
// Thread safety: one thread at a time.

#ifndef GMT_FORMAT_EXPECTED_NODES_H_
#define GMT_FORMAT_EXPECTED_NODES_H_

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace gmt::format {

class ExpectedNodes {
 public:
  // What the column holds for `name`, and back. Ids of a stack and of a string; may wrap around.
  int32_t Encode(uint32_t stack, uint32_t name) {
    return static_cast<int32_t>(name - std::exchange(names_[stack], name));
  }
  uint32_t Decode(uint32_t stack, int32_t difference) {
    return names_[stack] += static_cast<uint32_t>(difference);
  }
  // Begins the next chunk.
  void Clear() { names_.clear(); }

 private:
  absl::flat_hash_map<uint32_t, uint32_t> names_;  // by stack
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_EXPECTED_NODES_H_
