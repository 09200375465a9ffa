#include "preload/stacks/unwind/stack_range.h"

#if GMT_HAS_NATIVE_WALK

#include "preload/base/memory.h"

namespace gmt::preload {
namespace {

constexpr uint64_t kLargestFrame = 16 << 20;  // anything farther away does not belong to a frame of
                                              // this stack

uint64_t PageOf(uint64_t address) { return address & ~(kPage - 1); }

}  // namespace

// Cache: the stack of a thread, which goes on in a fork child.
thread_local constinit StackRange StackRange::remembered = {0, 0};

bool StackRange::Reach(uint64_t address) {
  if (Holds(address)) return true;
  if (address >= kAddressLimit || high == low) return false;
  if (address >= high) {
    if (address - high > kLargestFrame) return false;
    for (; high <= address; high += kPage) {
      if (!IsReadable(high)) return false;
    }
    return true;
  }
  if (low - address > kLargestFrame) return false;
  for (; low > address; low -= kPage) {
    if (!IsReadable(low - kPage)) return false;
  }
  return true;
}

void StackRange::ForgetAbove(uint64_t address) {
  const uint64_t end = PageOf(address) + kPage;
  if (Holds(address) && end < high) high = end;
}

// If the thread is deeper in its stack than before, the part above is kept.
__attribute__((noinline, cold)) StackRange StackRange::Begin(uint64_t sp) {
  constexpr uint64_t kNear = 1 << 20;
  StackRange range = remembered;
  if (range.low > sp && range.low - sp < kNear && range.Reach(sp)) {
    range.Remember();
    return range;
  }
  range = {PageOf(sp), PageOf(sp)};
  if (IsReadable(sp)) range.high += kPage;
  range.Remember();
  return range;
}

// A signal handler that interrupts this finds a range that holds nothing, and leaves it alone.
__attribute__((noinline, cold)) void StackRange::Remember() const {
  if (remembered.low == kBeingWritten) return;
  remembered.low = kBeingWritten;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  remembered.high = high;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  remembered.low = low;
}

}  // namespace gmt::preload

#endif  // GMT_HAS_NATIVE_WALK
