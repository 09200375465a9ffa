// session/in_flight.h
//
// InFlightTable: the driver call that each thread is executing. A thread holds a slot only during a
// driver call. If the process is killed, hangs or runs out of memory there, the slot shows the
// function, size and stack of that call.
//
// Thread safety: all methods may be called from any thread, without a lock. A reader may see a mix
// of two successive calls of a thread. The table is meant to be read post mortem, when nothing
// changes.

#ifndef GMT_SESSION_IN_FLIGHT_H_
#define GMT_SESSION_IN_FLIGHT_H_

#include <cstdint>

#include "session/layout.h"

namespace gmt::session {

class InFlightTable {
 public:
  constexpr InFlightTable() = default;
  InFlightTable(InFlightSlot* slots, uint32_t count) : slots_(slots), count_(count) {}

  // Returns a slot for this thread's call, or nullptr if the 16 probed slots are all taken.
  // REQUIRES: thread != 0.
  InFlightSlot* Begin(uint32_t thread, uint32_t api, uint64_t size, uint64_t now_ns) const {
    for (uint32_t probe = 0; probe < kProbes; ++probe) {
      InFlightSlot& slot = slots_[(thread + probe) % count_];
      uint32_t free = 0;
      if (slot.thread.load(std::memory_order_relaxed) != 0) continue;
      if (!slot.thread.compare_exchange_strong(free, thread, std::memory_order_acquire)) continue;
      slot.api.store(api, std::memory_order_relaxed);
      slot.size.store(size, std::memory_order_relaxed);
      slot.stack.store(0, std::memory_order_relaxed);
      slot.since_ns.store(now_ns, std::memory_order_relaxed);
      return &slot;
    }
    return nullptr;
  }

  static void End(InFlightSlot* slot) {
    if (slot != nullptr) slot->thread.store(0, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kProbes = 16;

  InFlightSlot* slots_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace gmt::session

#endif  // GMT_SESSION_IN_FLIGHT_H_
