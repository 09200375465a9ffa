// preload/torch/state/node_saves.h
//
// NodeSaves: the memory that nodes of Python's autograd functions (torch.autograd.Function, and what
// torch.compile makes of a model) have saved. PyTorch lets go of what its own nodes save by a function
// that is hooked (SavedVariable::reset_data), and of what these save by none: it is known to end with
// the node's evaluation or with the node.
//
// Room for kEntries saves at a time. One that finds none, or finds the table in use by another thread
// for too long, is not remembered: its memory counts as saved until it is freed.
//
// Thread safety: all methods from any thread; none waits. Zero bytes are an empty table.

#ifndef GMT_PRELOAD_TORCH_STATE_NODE_SAVES_H_
#define GMT_PRELOAD_TORCH_STATE_NODE_SAVES_H_

#include <stdint.h>

#include <atomic>

namespace gmt::preload {

class NodeSaves {
 public:
  static constexpr uint32_t kEntries = 8192;

  // REQUIRES: nobody uses it.
  void Forget();
  void Add(const void* node, uint64_t address);
  // Calls visit(address) for each that the node saved, and forgets them.
  template <typename Visit>
  void Take(const void* node, Visit visit) {
    if (count_.load(std::memory_order_relaxed) == 0 || !TryLock()) return;
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
  // Entries are numbered from 1 on; 0: none.
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
  uint32_t used_;  // entries that were ever used
  uint32_t free_;  // the first of those that are not used any more
  uint32_t buckets_[kBuckets];
  Entry entries_[kEntries];
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_STATE_NODE_SAVES_H_
