// format/expected_nodes.h
//
// ExpectedNodes: predicts which class of autograd node a stack of the forward pass creates, namely
// the class that it created last. The file holds the difference from this prediction, which is
// nearly always 0, instead of the class.
//
//   event                          name   expected   in the file
//   (chunk begins)                               0
//   role, stack 7, MulBackward0       3          0             3
//   role, stack 9, AddBackward0       5          0             5
//   role, stack 7, MulBackward0       3          3             0
//
// It starts anew in each chunk, so that a lost chunk does not affect names in others.
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
  // Convert `name` to its value in the column, and back. `stack` and `name` are ids; values may
  // wrap around.
  int32_t Encode(uint32_t stack, uint32_t name) {
    return static_cast<int32_t>(name - std::exchange(names_[stack], name));
  }
  uint32_t Decode(uint32_t stack, int32_t difference) {
    return names_[stack] += static_cast<uint32_t>(difference);
  }
  // Starts the next chunk.
  void Clear() { names_.clear(); }

 private:
  absl::flat_hash_map<uint32_t, uint32_t> names_;  // by stack
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_EXPECTED_NODES_H_
