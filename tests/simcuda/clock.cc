#include "tests/simcuda/clock.h"

#include <time.h>

#include <atomic>

namespace sim {
namespace {

std::atomic<uint64_t> skipped{0};

uint64_t Monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + now.tv_nsec;
}

}  // namespace

uint64_t Now() { return Monotonic() + skipped.load(std::memory_order_acquire); }

void SleepUntil(uint64_t time) {
  for (uint64_t now = Now(); now < time; now = Now()) {
    uint64_t left = time - now;
    timespec duration = {static_cast<time_t>(left / 1'000'000'000),
                         static_cast<long>(left % 1'000'000'000)};
    nanosleep(&duration, nullptr);
  }
}

void SkipTo(uint64_t time) {
  // Another thread may skip at the same time; the clock must not go further than either requested.
  uint64_t before = skipped.load(std::memory_order_acquire);
  while (true) {
    uint64_t now = Monotonic() + before;
    if (now >= time) return;
    if (skipped.compare_exchange_weak(before, before + (time - now))) return;
  }
}

}  // namespace sim
