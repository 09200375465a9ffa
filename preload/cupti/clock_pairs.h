// preload/cupti/clock_pairs.h
//
// ClockPairs: CUPTI's times as times of CLOCK_MONOTONIC.
//
// CUPTI tells the time of CLOCK_REALTIME, or of whatever function a tool in this process has
// registered for it: another rate, another beginning, and steps when somebody sets the clock. So both
// clocks are read together again and again, and between two such pairs time is taken to run evenly.
//
//   theirs   t0 ........ t1 ...... t2 ....     a time before t0 or behind t2 is converted with the
//   ours     m0 ........ m1 ...... m2 ....     rate of the nearest two pairs
//
// A tool registers its function before it takes CUPTI from us, so the last pair of all may be one of
// another clock than the records that are still to be read: each time belongs to the pair nearest to
// it.
//
// The other way, registering a function of our own that reads CLOCK_MONOTONIC, would be exact, but it
// stays registered when the next tool comes, whose records would then have our times.
//
// Thread safety: none; whoever reads a buffer has the turn (preload/cupti/turn.h).

#ifndef GMT_PRELOAD_CUPTI_CLOCK_PAIRS_H_
#define GMT_PRELOAD_CUPTI_CLOCK_PAIRS_H_

#include <stdint.h>

namespace gmt::preload {

class ClockPairs {
 public:
  constexpr ClockPairs() = default;

  // Both clocks at one moment. A pair closer than a millisecond to the last is left out: over so
  // short a time the rate would be that of the reading's error.
  void Add(uint64_t theirs, uint64_t ours);

  // What was known no longer holds: another function may be registered by now.
  void Forget() { count_ = 0; }

  // 0 for 0, which is CUPTI's word for a time that it does not know, and where no pair is known.
  uint64_t ToOurs(uint64_t theirs) const;

 private:
  static constexpr uint32_t kPairs = 64;
  static constexpr uint64_t kClose = 1000000;

  struct Pair {
    uint64_t theirs, ours;
  };

  uint32_t Nearest(uint64_t theirs) const;
  double Rate(uint32_t from) const;

  Pair pairs_[kPairs] = {};  // by age
  uint32_t count_ = 0;
};

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_CUPTI_CLOCK_PAIRS_H_
