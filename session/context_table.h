// session/context_table.h
//
// ContextTable: the contexts of the traced process, numbered in the order in which they were first
// seen. Events carry the number.
//
// Thread safety: all methods may be called from any thread, without a lock.

#ifndef GMT_SESSION_CONTEXT_TABLE_H_
#define GMT_SESSION_CONTEXT_TABLE_H_

#include "session/layout.h"

namespace gmt::session {

class ContextTable {
 public:
  struct Found {
    uint8_t number = 0;  // 0: not in the table
    uint8_t device = kNoDevice;
  };

  constexpr ContextTable() = default;
  ContextTable(ContextEntry* entries, uint64_t count)
      : entries_(entries), count_(count < kMaxContexts ? count : kMaxContexts) {}

  // REQUIRES: handle != 0.
  Found Find(uint64_t handle) const {
    for (uint64_t i = 0; i < count_; ++i) {
      const uint64_t seen = entries_[i].handle.load(std::memory_order_acquire);
      if (seen == handle) {
        const uint64_t device = entries_[i].device.load(std::memory_order_acquire);
        return {static_cast<uint8_t>(i + 1), static_cast<uint8_t>(device - 1)};
      }
      if (seen == 0) break;
    }
    return {};
  }

  // Adds a context, or updates the device of a known one. Returns its number, or 0 if the table is
  // full. Sets *is_new to whether the context was added.
  uint8_t Enter(uint64_t handle, uint8_t device, bool* is_new) const {
    *is_new = false;
    for (uint64_t i = 0; i < count_; ++i) {
      uint64_t seen = entries_[i].handle.load(std::memory_order_acquire);
      if (seen == 0) {
        *is_new = entries_[i].handle.compare_exchange_strong(seen, handle);
        if (*is_new) seen = handle;
      }
      if (seen != handle) continue;
      entries_[i].device.store(uint64_t{device} + 1, std::memory_order_release);
      return static_cast<uint8_t>(i + 1);
    }
    return 0;
  }

  // Records that context `number` was destroyed: the next context with its handle may be on another
  // device.
  void End(uint8_t number) const {
    entries_[number - 1].device.store(0, std::memory_order_release);
  }

 private:
  static constexpr uint64_t kMaxContexts = 255;  // events store the number in eight bits

  ContextEntry* entries_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_CONTEXT_TABLE_H_
