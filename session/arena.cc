#include "session/arena.h"

#include "session/populate.h"

namespace gmt::session {
namespace {

constexpr uint64_t kPageWords = 4096 / sizeof(uint64_t);
constexpr uint64_t kGrowthWords = (1 << 20) / sizeof(uint64_t);

}  // namespace

// Allocates memory for the arena's next mebibyte. `backed` is the value of arena_backed that the
// caller has seen. Threads that call this at the same time do the same work.
bool Arena::Grow(uint64_t backed) const {
  if (backed >= size_ || control_->arena_errno.load(std::memory_order_relaxed) != 0) return false;
  const uint64_t left = size_ - backed;
  const uint64_t more = left < kGrowthWords ? left : kGrowthWords;
  const uint64_t first = backed / kPageWords * kPageWords;
  const int error = Populate(words_ + first, (backed + more - first) * sizeof(uint64_t));
  if (error != 0) {
    control_->arena_errno.store(static_cast<uint32_t>(error), std::memory_order_relaxed);
    return false;
  }
  control_->arena_backed.compare_exchange_strong(backed, backed + more, std::memory_order_acq_rel);
  return true;
}

// Compares differences, so that a corrupted counter cannot wrap around.
bool Arena::Fits(uint64_t from, uint64_t count) const {
  for (uint64_t backed = Backed(); from >= backed || count >= backed - from; backed = Backed()) {
    if (from >= size_ || count >= size_ - from || !Grow(backed)) return false;
  }
  return true;
}

uint64_t Arena::Append(uint64_t count) const {
  // Checks before incrementing, so that a full arena does not keep counting up.
  if (!Fits(control_->arena_used.load(std::memory_order_relaxed), count)) return 0;
  const uint64_t used = control_->arena_used.fetch_add(count, std::memory_order_relaxed);
  return Fits(used, count) ? used + 1 : 0;
}

}  // namespace gmt::session
