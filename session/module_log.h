// session/module_log.h
//
// ModuleLog: what was mapped where while stacks were recorded, append-only, so that an address in a
// stack keeps its meaning after the library is gone.
//
// A module enters the log when the first new stack names an address in it. One thread appends at a
// time; another that finds the log taken leaves it: its stack is complete without, and the module
// enters with the next new stack.
//
// A record with neither path nor build-id says that the module which was there has gone. Like any
// record that takes over addresses it raises the generation, so that what is recorded there next
// (code that no library brings, say) is not taken for the module's.
//
// Thread safety: Append() from any thread, never waiting. Records below count() never change.

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

  // Never more than there is room for: what stands in shared memory may have been scribbled over,
  // and must not make the traced process read behind the log.
  uint32_t count() const {
    const uint32_t n = control_->module_count.load(std::memory_order_acquire);
    return n < capacity_ ? n : capacity_;
  }

  // The generation of the youngest record; 0 while the log is empty.
  uint32_t generation() const {
    const uint32_t n = count();
    return n == 0 ? 0 : records_[n - 1].generation;
  }

  // The youngest record that covers `address`, or nullptr.
  const ModuleRecord* Find(uint64_t address) const {
    for (uint32_t i = count(); i > 0; --i) {
      if (address >= records_[i - 1].start && address < records_[i - 1].end)
        return &records_[i - 1];
    }
    return nullptr;
  }

  // Record number `i`, below count().
  const ModuleRecord& record(uint32_t i) const { return records_[i]; }
  bool full() const { return count() == capacity_; }

  // Whether this says that a module has gone.
  static bool IsGone(const ModuleRecord& r) { return r.path_size == 0 && r.build_id_size == 0; }

  // Appends a copy of *record with its generation set. False when another thread is appending, or
  // the log is full (counted).
  bool Append(const ModuleRecord& record, uint32_t thread) const;

 private:
  Control* control_ = nullptr;
  ModuleRecord* records_ = nullptr;
  uint32_t capacity_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_MODULE_LOG_H_
