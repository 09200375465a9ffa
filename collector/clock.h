// collector/clock.h
//
// Clock: time and waiting, as the collector's parts see them, so that tests need not wait.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_CLOCK_H_
#define GMT_COLLECTOR_CLOCK_H_

#include <cstdint>

namespace gmt::collector {

inline constexpr uint64_t kMillisecond = 1000000;
inline constexpr uint64_t kSecond = 1000 * kMillisecond;

class Clock {
 public:
  virtual ~Clock() = default;
  // CLOCK_MONOTONIC, the session's clock.
  virtual uint64_t NowNs() = 0;
  // Returns after `ns`, or earlier where there is reason to look again: a signal, the target's
  // death.
  virtual void Wait(uint64_t ns) = 0;
};

// The kernel's clock. Wait() ends early when `pidfd` (-1: none) becomes readable; not owned.
class SystemClock : public Clock {
 public:
  explicit SystemClock(int pidfd) : pidfd_(pidfd) {}
  uint64_t NowNs() override;
  void Wait(uint64_t ns) override;

 private:
  int pidfd_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_CLOCK_H_
