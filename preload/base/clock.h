// preload/base/clock.h

#ifndef GMT_PRELOAD_BASE_CLOCK_H_
#define GMT_PRELOAD_BASE_CLOCK_H_

#include <stdint.h>
#include <time.h>

namespace gmt::preload {

// Returns CLOCK_MONOTONIC in nanoseconds, the clock of every time in a session. Does not enter the
// kernel if the machine's clock source permits that.
inline uint64_t NowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_BASE_CLOCK_H_
