// collector/clock.h
//
// Clock: the time source of the collector's classes. Tests replace it to avoid waiting.
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
  // Returns CLOCK_MONOTONIC, the clock of the session.
  virtual uint64_t NowNs() = 0;
  // Waits for `ns`, or less if there is a reason to look again: a signal or the target's death.
  virtual void Wait(uint64_t ns) = 0;
};

// The kernel's clock. Wait() ends early when `pidfd` becomes readable (-1: none; not owned).
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
