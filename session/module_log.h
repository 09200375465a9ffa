// session/module_log.h
//
// ModuleLog: an append-only log of which module was mapped at which addresses while stacks were
// recorded. It gives the addresses in a stack their meaning even after a library was unloaded.
//
// A module enters the log when the first new stack contains an address in it. One thread appends at
// a time. A thread that finds the log busy skips the append: its stack is valid without it, and the
// module enters with the next new stack.
//
// A record with neither path nor build-id means that the previous module was unloaded. Like any
// record that takes over addresses it increments the generation, so that later frames there (for
// example in generated code) are not attributed to the old module.
//
// Thread safety: Append() may be called from any thread and never waits. Records below count()
// never change.

#ifndef GMT_SESSION_MODULE_LOG_H_
#define GMT_SESSION_MODULE_LOG_H_

#include <cstdint>

#include "session/layout.h"

namespace gmt::session {

class ModuleLog {
 public:
  constexpr ModuleLog() = default;
  ModuleLog(Control* control, ModuleRecord* records, uint32_t capacity)
      : control_(control), records_(records), capacity_(capacity) {}

  // Returns the number of records, limited to the capacity. Corrupt shared memory must not make the
  // traced process read past the end of the log.
  uint32_t count() const {
    const uint32_t n = control_->module_count.load(std::memory_order_acquire);
    return n < capacity_ ? n : capacity_;
  }

  // Returns the generation of the newest record, or 0 if the log is empty.
  uint32_t generation() const {
    const uint32_t n = count();
    return n == 0 ? 0 : records_[n - 1].generation;
  }

  // Returns the newest record that covers `address`, or nullptr.
  const ModuleRecord* Find(uint64_t address) const {
    for (uint32_t i = count(); i > 0; --i) {
      if (address >= records_[i - 1].start && address < records_[i - 1].end)
        return &records_[i - 1];
    }
    return nullptr;
  }

  // Returns record `i`. REQUIRES: i < count().
  const ModuleRecord& record(uint32_t i) const { return records_[i]; }
  bool full() const { return count() == capacity_; }

  // Returns whether the record marks an unloaded module.
  static bool IsGone(const ModuleRecord& r) { return r.path_size == 0 && r.build_id_size == 0; }

  // Returns whether both describe the same module at the same place.
  static bool AreSame(const ModuleRecord& a, const ModuleRecord& b);

  // Appends a copy of the record with its generation set, unless the newest record of these
  // addresses is the same: then another thread was faster. Returns false if another thread is
  // appending, or if the log is full (which is counted).
  bool Append(const ModuleRecord& record, uint32_t thread) const;

 private:
  Control* control_ = nullptr;
  ModuleRecord* records_ = nullptr;
  uint32_t capacity_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_MODULE_LOG_H_
