// preload/base/clock.h
//
// The clock of every time in a session: CLOCK_MONOTONIC, in nanoseconds.
//
// clock_gettime() takes 20 to 25 ns, most of it for a fence that no time in a recording needs. If
// the kernel derives its clock from the processor's time stamp counter, NowNs() therefore reads
// that counter and adds what has passed since a reading of both:
//
//   reading     1,000,000 ticks   5,000,000 ns   0.4 ns per tick
//   NowNs() at  1,000,500 ticks   5,000,200 ns
//
// A reading is used for kClockMaxTicks, about a millisecond; then any thread replaces it. So an
// error of the rate, and a change of it, cost less than a microsecond, and a counter that jumps is
// noticed. The rate is that of two readings at least 10 ms apart, and is measured again if it
// changes by more than 0.1 %, e.g. because the machine was suspended.
//
// The times of a thread do not decrease. Those of different threads are comparable to within a
// tenth of a microsecond; the order of events is that of their tickets (docs/session.md).
//
// Thread safety: all functions may be called from any thread and signal handler. Cost: 10 ns.

#ifndef GMT_PRELOAD_BASE_CLOCK_H_
#define GMT_PRELOAD_BASE_CLOCK_H_

#include <stdint.h>

#include <atomic>

#include "preload/base/thread_state.h"

namespace gmt::preload {

inline constexpr uint64_t kClockMaxTicks = 1 << 21;

// Counter and clock at one moment. All zero: none yet.
struct alignas(64) ClockReading {
  std::atomic<uint64_t> version;  // odd while the others change
  std::atomic<uint64_t> ticks, ns;
  std::atomic<uint64_t> rate;  // nanoseconds per tick, times 2^32
  std::atomic<uint64_t> use;   // the ticks for which it may be used
};
extern constinit ClockReading clock_reading;

// Permits NowNs() to use the counter if the kernel does, and forgets a parent process's reading.
// Must precede the first NowNs() of a process. `clock_source`: the file that names the kernel's
// source. Opens a file.
void PrepareClock(
    const char* clock_source = "/sys/devices/system/clocksource/clocksource0/current_clocksource");

// Reads the clock itself, and replaces the reading.
uint64_t ReadClock();

// Returns what the counter says, or 0 if there is no reading that may be used.
inline uint64_t DerivedNs() {
#if defined(__x86_64__)
  const ClockReading& reading = clock_reading;
  const uint64_t version = reading.version.load(std::memory_order_acquire) & ~uint64_t{1};
  const uint64_t passed = __builtin_ia32_rdtsc() - reading.ticks.load(std::memory_order_relaxed);
  const uint64_t use = reading.use.load(std::memory_order_relaxed);
  const uint64_t rate = reading.rate.load(std::memory_order_relaxed);
  const uint64_t ns = reading.ns.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (passed < use && reading.version.load(std::memory_order_relaxed) == version) [[likely]]
    return ns + (passed * rate >> 32);
#endif
  return 0;
}

inline uint64_t NowNs() {
  uint64_t now = DerivedNs();
  if (now == 0) [[unlikely]]
    now = ReadClock();
  // A derived time may lag behind the clock by a tenth of a microsecond.
  constexpr uint32_t kMaxDecrease = 1000;
  uint32_t& last = thread_state.last_ns;
  const uint32_t decrease = last - static_cast<uint32_t>(now);
  if (decrease < kMaxDecrease) return now + decrease;
  last = static_cast<uint32_t>(now);
  return now;
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_CLOCK_H_
