#include "preload/cupti/stream_ids.h"

namespace gmt::preload {
namespace {

uint64_t Spread(uint64_t key) { return key * 0x9e3779b97f4a7c15 >> 40; }

}  // namespace

bool StreamIds::Learn(uint32_t context, uint32_t stream, uint64_t handle) {
  const uint64_t key = Key(context, stream);
  for (uint64_t probe = 0; probe < kProbes; ++probe) {
    Entry& e = entries_[(Spread(key) + probe) % kCapacity];
    uint64_t seen = e.key.load(std::memory_order_acquire);
    if (seen == 0 && e.key.compare_exchange_strong(seen, key, std::memory_order_acq_rel))
      seen = key;
    if (seen != key) continue;
    // Stored plus one, so that a lookup can distinguish an entry whose handle is not stored yet
    // from the handle 0.
    e.handle.store(handle + 1, std::memory_order_release);
    return true;
  }
  return false;
}

bool StreamIds::Find(uint32_t context, uint32_t stream, uint64_t* handle) const {
  const uint64_t key = Key(context, stream);
  for (uint64_t probe = 0; probe < kProbes; ++probe) {
    const Entry& e = entries_[(Spread(key) + probe) % kCapacity];
    const uint64_t seen = e.key.load(std::memory_order_acquire);
    if (seen == 0) return false;
    if (seen != key) continue;
    const uint64_t found = e.handle.load(std::memory_order_acquire);
    *handle = found - 1;
    return found != 0;
  }
  return false;
}

}  // namespace gmt::preload
