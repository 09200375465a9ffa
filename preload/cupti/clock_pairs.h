// preload/cupti/clock_pairs.h
//
// ClockPairs: converts CUPTI's times to times of CLOCK_MONOTONIC.
//
// CUPTI reports CLOCK_REALTIME, or the time of a function that a tool in this process has
// registered. Such a clock has another rate and origin, and it jumps when the clock is set. Both
// clocks are therefore read together repeatedly, and time is assumed to run evenly between two such
// pairs.
//
//   theirs   t0 ........ t1 ...... t2 ....     a time before t0 or after t2 is converted with the
//   ours     m0 ........ m1 ...... m2 ....     rate of the nearest two pairs
//
// A tool registers its function before it takes CUPTI from us, so the very last pair may be of a
// different clock than the records that are still to be read. Each time is therefore converted by
// the pair nearest to it.
//
// The alternative, registering a function of our own that reads CLOCK_MONOTONIC, would be exact,
// but it would stay registered for the next tool, whose records would then carry our times.
//
// Thread safety: none; a thread that reads a buffer holds the lock (preload/cupti/timed_lock.h).

#ifndef GMT_PRELOAD_CUPTI_CLOCK_PAIRS_H_
#define GMT_PRELOAD_CUPTI_CLOCK_PAIRS_H_

#include <stdint.h>

namespace gmt::preload {

class ClockPairs {
 public:
  constexpr ClockPairs() = default;

  // Adds readings of both clocks at one moment. Leaves out a pair less than a millisecond after the
  // previous one: over so short a time the rate would mostly reflect the reading error.
  void Add(uint64_t theirs, uint64_t ours);

  // Discards all pairs, because another function may be registered by now.
  void Forget() { count_ = 0; }

  // Returns 0 for 0, CUPTI's value for an unknown time, and if there is no pair.
  uint64_t ToOurs(uint64_t theirs) const;

 private:
  static constexpr uint32_t kPairs = 64;
  static constexpr uint64_t kClose = 1000000;

  struct Pair {
    uint64_t theirs, ours;
  };

  uint32_t Nearest(uint64_t theirs) const;
  double Rate(uint32_t from) const;

  Pair pairs_[kPairs] = {};  // oldest first
  uint32_t count_ = 0;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_CLOCK_PAIRS_H_
