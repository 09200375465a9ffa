#include "preload/base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace gmt::preload {

// State: of the process that `prepared_in` names. A fork child may be in another time namespace,
// and another thread may have been replacing the reading.
constinit ClockReading clock_reading = {};

namespace {

constexpr uint64_t kMinNsOfRate = 10'000'000;
constexpr uint64_t kMaxChangeOfRate = 1024;  // a rate that changes by 1/1024 was not measured well
constexpr uint64_t kMaxGapTicks = 512;       // from a reading of the counter to the next
constexpr int kReadings = 4;                 // attempts to read both without an interruption
// The counter is given up if it cannot be read so many times in a row: each reading of it traps.
constexpr int kMaxFailures = 16;

// State: of the machine.
constinit std::atomic<bool> uses_counter = false;

// What only the thread that changes the reading uses.
struct Calibration {
  uint64_t from_ticks, from_ns;  // the reading from which the rate is measured
  uint64_t rate;                 // 0: unknown
  int failures;
};
// State: as clock_reading.
constinit Calibration calibration = {};
// State: compared with the process.
constinit pid_t prepared_in = 0;

// REQUIRES: no other thread reads the clock.
void Forget() {
  calibration = {};
  thread_state.last_ns = 0;
  for (std::atomic<uint64_t>* word :
       {&clock_reading.use, &clock_reading.ns, &clock_reading.version})
    word->store(0, std::memory_order_relaxed);
}

uint64_t SystemNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

#if defined(__x86_64__)

struct Moment {
  uint64_t ticks, ns;
};

// Reads the clock and, after it, the counter. Returns false if the thread was interrupted between
// them each time; `moment` is then valid but for its ticks.
bool ReadBoth(Moment* moment) {
  for (int i = 0; i < kReadings; ++i) {
    const uint64_t before = __builtin_ia32_rdtsc();
    moment->ns = SystemNs();
    moment->ticks = __builtin_ia32_rdtsc();
    if (moment->ticks - before < kMaxGapTicks) return true;
  }
  return false;
}

// Returns nanoseconds per tick, times 2^32. REQUIRES: both numbers are positive.
uint64_t RateOf(uint64_t ns, uint64_t ticks) {
  while (ns >> 32 != 0) ns >>= 1, ticks >>= 1;
  return ticks == 0 ? 0 : (ns << 32) / ticks;
}

void MeasureRate(const Moment& now) {
  Calibration& c = calibration;
  const uint64_t ns = now.ns - c.from_ns;
  if (c.from_ns != 0) {
    if (ns < kMinNsOfRate) return;
    const uint64_t rate = RateOf(ns, now.ticks - c.from_ticks);
    const uint64_t change = rate > c.rate ? rate - c.rate : c.rate - rate;
    const bool is_plausible = c.rate == 0 || change <= c.rate / kMaxChangeOfRate;
    c.rate = is_plausible ? rate : 0;
  }
  c.from_ns = now.ns;
  c.from_ticks = now.ticks;
}

#endif

}  // namespace

void PrepareClock(const char* clock_source) {
  if (prepared_in != getpid()) Forget();
  prepared_in = getpid();
  char name[64] = "";
  const int fd = open(clock_source, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = read(fd, name, sizeof(name) - 1);
  close(fd);
  if (n > 0 && name[n - 1] == '\n') name[n - 1] = '\0';
  bool kernel_does = false;
  for (const char* derived : {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page"})
    kernel_does |= strcmp(name, derived) == 0;
  uses_counter.store(kernel_does, std::memory_order_relaxed);
}

uint64_t ReadClock() {
#if defined(__x86_64__)
  if (!uses_counter.load(std::memory_order_relaxed)) return SystemNs();
  ClockReading& reading = clock_reading;
  uint64_t version = reading.version.load(std::memory_order_relaxed);
  if (version % 2 != 0 ||
      !reading.version.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel))
    return SystemNs();
  Moment now;
  const bool has_both = ReadBoth(&now);
  if (has_both) MeasureRate(now);
  calibration.failures = has_both ? 0 : calibration.failures + 1;
  if (calibration.failures == kMaxFailures) uses_counter.store(false, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  reading.ticks.store(now.ticks, std::memory_order_relaxed);
  reading.ns.store(now.ns, std::memory_order_relaxed);
  reading.rate.store(calibration.rate, std::memory_order_relaxed);
  reading.use.store(has_both && calibration.rate != 0 ? kClockMaxTicks : 0,
                    std::memory_order_relaxed);
  reading.version.store(version + 2, std::memory_order_release);
  return now.ns;
#else
  return SystemNs();
#endif
}

}  // namespace gmt::preload
