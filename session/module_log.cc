#include "session/module_log.h"

#include <cstring>

namespace gmt::session {

bool ModuleLog::AreSame(const ModuleRecord& a, const ModuleRecord& b) {
  return a.start == b.start && a.end == b.end && a.bias == b.bias &&
         a.build_id_size == b.build_id_size &&
         std::memcmp(a.build_id, b.build_id, a.build_id_size) == 0 && a.path_size == b.path_size &&
         std::memcmp(a.path, b.path, a.path_size) == 0;
}

bool ModuleLog::Append(const ModuleRecord& record, uint32_t thread) const {
  uint32_t unlocked = 0;
  if (!control_->module_lock.compare_exchange_strong(unlocked, thread, std::memory_order_acquire))
    return false;
  const uint32_t n = count();
  const ModuleRecord* newest = nullptr;  // the newest record of these addresses
  for (uint32_t i = 0; i < n; ++i) {
    if (record.start < records_[i].end && records_[i].start < record.end) newest = &records_[i];
  }
  const bool is_known = newest != nullptr && AreSame(*newest, record);
  const bool fits = is_known || n < capacity_;
  if (fits && !is_known) {
    ModuleRecord& place = records_[n];
    std::memcpy(&place, &record, sizeof(place));
    place.generation = (n == 0 ? 0 : records_[n - 1].generation) + (newest != nullptr ? 1 : 0);
    control_->module_count.store(n + 1, std::memory_order_release);
  } else if (!fits) {
    control_->counters[kModulesFull].fetch_add(1, std::memory_order_relaxed);
  }
  control_->module_lock.store(0, std::memory_order_release);
  return fits;
}

}  // namespace gmt::session
