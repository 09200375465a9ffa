#include "preload/cupti/pending_syncs.h"

namespace gmt::preload {
namespace {

constexpr uint32_t kProbes = 16;
// Indices into session::Words.
constexpr int kTime = 0, kStream = 3;

uint64_t Distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

session::Action ActionOf(const session::Words& words) {
  session::Record r;
  return session::Unpack(words, &r) ? r.action : session::Action::kNone;
}

}  // namespace

bool PendingSyncs::Add(const session::Record& sync) {
  for (uint32_t probe = 0; probe < kProbes; ++probe) {
    Entry& e = entries_[next_.fetch_add(1, std::memory_order_relaxed) % kCapacity];
    uint32_t free = kFree;
    if (!e.state.compare_exchange_strong(free, kBeingWritten, std::memory_order_acquire)) continue;
    e.sync = session::Pack(sync);
    e.state.store(kWaiting, std::memory_order_release);
    return true;
  }
  return false;
}

bool PendingSyncs::Take(session::Action action, uint64_t stream, uint64_t end_ns,
                        session::Record* sync) {
  Entry* nearest = nullptr;
  uint64_t nearest_distance = kToleranceNs + 1;
  for (Entry& e : entries_) {
    if (e.state.load(std::memory_order_acquire) != kWaiting) continue;
    const uint64_t distance = Distance(e.sync[kTime], end_ns);
    if (e.sync[kStream] != stream || distance >= nearest_distance) continue;
    if (ActionOf(e.sync) != action) continue;
    nearest = &e;
    nearest_distance = distance;
  }
  return nearest != nullptr && Release(nearest, sync);
}

bool PendingSyncs::TakeOlder(uint64_t than_ns, session::Record* sync) {
  for (Entry& e : entries_) {
    if (e.state.load(std::memory_order_acquire) != kWaiting || e.sync[kTime] >= than_ns) continue;
    return Release(&e, sync);
  }
  return false;
}

bool PendingSyncs::Release(Entry* entry, session::Record* sync) {
  const bool whole = session::Unpack(entry->sync, sync);
  entry->state.store(kFree, std::memory_order_release);
  return whole;
}

}  // namespace gmt::preload
