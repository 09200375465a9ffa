// preload/torch/state/node_saves.h
//
// NodeSaves: the memory saved by nodes of Python autograd functions (torch.autograd.Function, and
// those into which torch.compile turns a model). For its own nodes, PyTorch releases saved memory
// through a hooked function (SavedVariable::reset_data). For these nodes it calls no such function;
// their saves end with the node's evaluation or with the node.
//
// Holds kEntries saves at a time. A save that finds no room, or finds the table locked by another
// thread for too long, is not kept; its memory then counts as saved until it is freed.
//
// Thread safety: all methods may be called from any thread; none waits. All-zero bytes are an empty
// table.

#ifndef GMT_PRELOAD_TORCH_STATE_NODE_SAVES_H_
#define GMT_PRELOAD_TORCH_STATE_NODE_SAVES_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class NodeSaves {
 public:
  static constexpr uint32_t kEntries = 8192;

  // REQUIRES: no thread is using it.
  void Forget();
  void Add(const void* node, uint64_t address);
  bool is_empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  // Calls visit(address) for each save of the node, and removes them.
  template <typename Visit>
  void Take(const void* node, Visit visit) {
    if (is_empty() || !TryLock()) return;
    uint32_t taken = Unlink(node);
    Unlock();
    while (taken != 0) {
      Entry& entry = entries_[taken - 1];
      visit(entry.address);
      const uint32_t next = entry.next;
      GiveBack(taken);
      taken = next;
    }
  }

 private:
  static constexpr uint32_t kBuckets = 1024;
  // Entries are numbered from 1; 0: none.
  struct Entry {
    const void* node;
    uint64_t address;
    uint32_t next;
  };

  bool TryLock();
  void Unlock() { locked_.store(0, std::memory_order_release); }
  uint32_t& BucketOf(const void* node) {
    return buckets_[reinterpret_cast<uint64_t>(node) * 0x9e3779b97f4a7c15 >> 54];
  }
  uint32_t Unlink(const void* node);
  void GiveBack(uint32_t number);

  std::atomic<uint32_t> locked_, count_;
  uint32_t used_;  // number of entries ever used
  uint32_t free_;  // first entry of the free list
  uint32_t buckets_[kBuckets];
  Entry entries_[kEntries];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_NODE_SAVES_H_
