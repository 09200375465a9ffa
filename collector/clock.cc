#include "collector/clock.h"

#include <poll.h>
#include <time.h>

namespace gmt::collector {

uint64_t SystemClock::NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * kSecond + static_cast<uint64_t>(t.tv_nsec);
}

void SystemClock::Wait(uint64_t ns) {
  pollfd target = {pidfd_, POLLIN, 0};  // poll ignores a negative descriptor
  const timespec timeout = {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  // A dead target's pidfd stays readable; ignore it from now on, so that Wait() does not spin.
  if (ppoll(&target, 1, &timeout, nullptr) > 0) pidfd_ = -1;
}

}  // namespace gmt::collector
