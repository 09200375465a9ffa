#include "preload/cupti/clock_pairs.h"

#include <string.h>

namespace gmt::preload {
namespace {

// REALTIME is slewed by at most 500 parts per million, and a cycle counter runs a few times as fast
// as nanoseconds. A rate far outside this range means that the clock was set between two pairs.
constexpr double kSlowest = 0.01, kFastest = 100;

}  // namespace

void ClockPairs::Add(uint64_t theirs, uint64_t ours) {
  if (count_ != 0 && ours - pairs_[count_ - 1].ours < kClose) return;
  if (count_ == kPairs) {
    memmove(pairs_, pairs_ + 1, (kPairs - 1) * sizeof(Pair));
    --count_;
  }
  pairs_[count_++] = {theirs, ours};
}

// Returns the pair nearest in CUPTI's time. A tool may have registered another clock since, whose
// times are far from all earlier ones.
uint32_t ClockPairs::Nearest(uint64_t theirs) const {
  uint32_t nearest = 0;
  uint64_t least = ~uint64_t{0};
  for (uint32_t i = 0; i < count_; ++i) {
    const uint64_t time = pairs_[i].theirs;
    const uint64_t away = time > theirs ? time - theirs : theirs - time;
    if (away > least) continue;
    least = away;
    nearest = i;
  }
  return nearest;
}

// Returns the rate of our clock relative to CUPTI's between two neighbouring pairs; 0: unknown.
double ClockPairs::Rate(uint32_t from) const {
  if (from + 1 >= count_) return 0;
  const Pair &a = pairs_[from], &b = pairs_[from + 1];
  if (a.theirs == b.theirs) return 0;
  const double rate = static_cast<double>(b.ours - a.ours) /
                      static_cast<double>(static_cast<int64_t>(b.theirs - a.theirs));
  return rate < kSlowest || rate > kFastest ? 0 : rate;
}

uint64_t ClockPairs::ToOurs(uint64_t theirs) const {
  if (theirs == 0 || count_ == 0) return 0;
  const uint32_t i = Nearest(theirs);
  const Pair& near = pairs_[i];
  const bool later = theirs >= near.theirs;
  double rate = later || i == 0 ? Rate(i) : Rate(i - 1);
  if (rate == 0) rate = later && i > 0 ? Rate(i - 1) : Rate(i);
  if (rate == 0) rate = 1;
  const auto away = static_cast<double>(static_cast<int64_t>(theirs - near.theirs)) * rate;
  return near.ours + static_cast<uint64_t>(static_cast<int64_t>(away));
}

}  // namespace gmt::preload
