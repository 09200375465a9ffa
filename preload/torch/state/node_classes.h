// preload/torch/state/node_classes.h
//
// NodeClasses: the class of an autograd node by its virtual table, as a text of the session. A name is
// looked for once for each class: PyTorch has some 700.
//
// Thread safety: all methods from any thread, without a lock of its own; the first look at a class takes
// the loader's. Zero bytes are an empty table.

#ifndef GMT_PRELOAD_TORCH_STATE_NODE_CLASSES_H_
#define GMT_PRELOAD_TORCH_STATE_NODE_CLASSES_H_

#include <stdint.h>

#include <atomic>

#include "session/text_table.h"

namespace gmt::preload {

class NodeClasses {
 public:
  // REQUIRES: nobody uses it.
  void Forget() {
    for (std::atomic<uint64_t>& entry : entries_) entry.store(0, std::memory_order_relaxed);
  }

  // "SoftmaxBackward0" for torch::autograd::generated::SoftmaxBackward0. 0: the class has no symbol.
  uint32_t NameOf(const void* node, const session::TextTable& texts);

 private:
  static constexpr uint32_t kPlaces = 4096, kProbes = 16;
  static constexpr uint64_t kNoName = 0xffffffff;  // in place of a text

  // Half of the hash of a virtual table's address << 32 | text
  std::atomic<uint64_t> entries_[kPlaces];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_NODE_CLASSES_H_
