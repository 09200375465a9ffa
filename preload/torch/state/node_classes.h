// preload/torch/state/node_classes.h
//
// NodeClasses: maps the virtual table of an autograd node to its class name, as a text of the
// session. The name is looked up once for each class; PyTorch has about 700.
//
// Thread safety: all methods may be called from any thread; it has no lock of its own, but the
// first lookup of a class takes the loader's. All-zero bytes are an empty table.

#ifndef GMT_PRELOAD_TORCH_STATE_NODE_CLASSES_H_
#define GMT_PRELOAD_TORCH_STATE_NODE_CLASSES_H_

#include <stdint.h>

#include <atomic>

#include "session/session_map.h"

namespace gmt::preload {

class NodeClasses {
 public:
  // REQUIRES: no thread is using it.
  void Forget() {
    for (std::atomic<uint64_t>& entry : entries_) entry.store(0, std::memory_order_relaxed);
  }

  // Returns "SoftmaxBackward0" for torch::autograd::generated::SoftmaxBackward0; 0 if the class has
  // no symbol.
  uint32_t NameOf(const void* node, const session::SessionMap& map);

 private:
  static constexpr uint32_t kPlaces = 4096, kProbes = 16;
  static constexpr uint64_t kNoName = 0xffffffff;  // stored in place of a text

  // Half of the hash of a virtual table's address << 32 | text.
  std::atomic<uint64_t> entries_[kPlaces];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_NODE_CLASSES_H_
