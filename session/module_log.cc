#include "session/module_log.h"

#include <cstring>

namespace gmt::session {

bool ModuleLog::Append(const ModuleRecord& record, uint32_t thread) const {
  uint32_t unlocked = 0;
  if (!control_->module_lock.compare_exchange_strong(unlocked, thread, std::memory_order_acquire))
    return false;
  const uint32_t n = count();
  const bool fits = n < capacity_;
  if (fits) {
    bool takes_over = false;
    for (uint32_t i = 0; i < n && !takes_over; ++i) {
      takes_over = record.start < records_[i].end && records_[i].start < record.end;
    }
    ModuleRecord& place = records_[n];
    std::memcpy(&place, &record, sizeof(place));
    place.generation = (n == 0 ? 0 : records_[n - 1].generation) + (takes_over ? 1 : 0);
    control_->module_count.store(n + 1, std::memory_order_release);
  } else {
    control_->counters[kModulesFull].fetch_add(1, std::memory_order_relaxed);
  }
  control_->module_lock.store(0, std::memory_order_release);
  return fits;
}

}  // namespace gmt::session
