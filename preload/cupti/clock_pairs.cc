#include "preload/cupti/clock_pairs.h"

#include <string.h>

namespace gmt::preload {
namespace {

// REALTIME is slewed by at most 500 parts in a million, a counter of cycles runs a few times as fast
// as nanoseconds; what is far from both is a clock that was set between two pairs.
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

uint64_t ClockPairs::ToOurs(uint64_t theirs) const {
  if (theirs == 0 || count_ == 0) return 0;
  // The last two pairs that do not lie behind the time, or the first two there are.
  uint32_t i = count_ - 1;
  while (i > 1 && pairs_[i - 1].theirs > theirs) --i;
  const Pair& to = pairs_[i];
  const Pair& from = i == 0 ? to : pairs_[i - 1];
  double rate = 1;
  if (to.theirs != from.theirs) {
    rate = static_cast<double>(to.ours - from.ours) /
           static_cast<double>(static_cast<int64_t>(to.theirs - from.theirs));
  }
  if (rate < kSlowest || rate > kFastest) rate = 1;
  const Pair& near = theirs >= to.theirs ? to : from;
  const auto away = static_cast<double>(static_cast<int64_t>(theirs - near.theirs)) * rate;
  return near.ours + static_cast<uint64_t>(static_cast<int64_t>(away));
}

}  // namespace gmt::preload
