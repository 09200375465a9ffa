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
// Invariants
//   K1  A reading is not less than any time that was derived from the reading before it.
//   K2  A derived time is at most as late as the clock, unless the clock's own rate has just been
//       changed.
//
// Thread safety: all functions may be called from any thread and signal handler. Cost: 10 ns.

#ifndef GMT_PRELOAD_BASE_CLOCK_H_
#define GMT_PRELOAD_BASE_CLOCK_H_

#include <stdint.h>

#include <atomic>

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

// Permits NowNs() to use the counter if the kernel does. `clock_source`: the file that names the
// kernel's source. Opens a file.
void PrepareClock(
    const char* clock_source = "/sys/devices/system/clocksource/clocksource0/current_clocksource");

// Reads the clock itself, and replaces the reading.
uint64_t ReadClock();

inline uint64_t NowNs() {
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
  return ReadClock();
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_CLOCK_H_
