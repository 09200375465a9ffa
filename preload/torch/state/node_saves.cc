#include "preload/torch/state/node_saves.h"

#include <string.h>

namespace gmt::preload {

bool NodeSaves::TryLock() {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    uint32_t unlocked = 0;
    if (locked_.compare_exchange_weak(unlocked, 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void NodeSaves::Forget() {
  if (used_ == 0) return;
  memset(buckets_, 0, sizeof(buckets_));
  used_ = free_ = 0;
  count_.store(0, std::memory_order_relaxed);
  Unlock();
}

void NodeSaves::Add(const void* node, uint64_t address) {
  if (!TryLock()) return;
  uint32_t number = free_;
  if (number != 0) {
    free_ = entries_[number - 1].next;
  } else if (used_ < kEntries) {
    number = ++used_;
  }
  if (number != 0) {
    uint32_t& bucket = BucketOf(node);
    entries_[number - 1] = {node, address, bucket};
    bucket = number;
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  Unlock();
}

// Removes the entries of the node from the table and returns them as a list.
uint32_t NodeSaves::Unlink(const void* node) {
  uint32_t taken = 0;
  uint32_t* link = &BucketOf(node);
  while (*link != 0) {
    const uint32_t number = *link;
    Entry& entry = entries_[number - 1];
    if (entry.node != node) {
      link = &entry.next;
      continue;
    }
    *link = entry.next;
    entry.next = taken;
    taken = number;
  }
  return taken;
}

void NodeSaves::GiveBack(uint32_t number) {
  if (!TryLock()) return;  // the entry is lost
  entries_[number - 1].next = free_;
  free_ = number;
  count_.fetch_sub(1, std::memory_order_relaxed);
  Unlock();
}

}  // namespace gmt::preload
