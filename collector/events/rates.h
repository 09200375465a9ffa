// collector/events/rates.h
//
// Rates of change: RateMeter for events, GrowthRates for live bytes.
//
// GrowthRates keeps a value every kEvery, for about kWindow. The rate is the change from the oldest
// of these values to now. It costs one comparison if no value is due.
//
// Thread safety: one thread at a time.

#ifndef GMT_COLLECTOR_EVENTS_RATES_H_
#define GMT_COLLECTOR_EVENTS_RATES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "collector/clock.h"

namespace gmt::collector {

// The rate of a counter, over about the last second.
class RateMeter {
 public:
  void Update(uint64_t now_ns, uint64_t count) {
    if (since_ns_ == 0) since_ns_ = now_ns, counted_ = count;
    if (now_ns - since_ns_ < kSecond) return;
    rate_ = PerSecond(count - counted_, now_ns - since_ns_);
    since_ns_ = now_ns;
    counted_ = count;
  }
  double rate() const { return rate_; }

 private:
  static double PerSecond(uint64_t count, uint64_t ns) {
    return static_cast<double>(count) * static_cast<double>(kSecond) / static_cast<double>(ns);
  }
  uint64_t since_ns_ = 0, counted_ = 0;
  double rate_ = 0;
};

// The rates of several values at once.
class GrowthRates {
 public:
  static constexpr uint64_t kEvery = 5 * kSecond;
  static constexpr uint64_t kWindow = 60 * kSecond;

  bool IsDue(uint64_t now_ns) const {
    return kept_.empty() || now_ns - kept_.back().first >= kEvery;
  }
  void Keep(uint64_t now_ns, std::vector<uint64_t> values) {
    kept_.emplace_back(now_ns, std::move(values));
    while (kept_.size() > 1 && now_ns - kept_[1].first >= kWindow) kept_.pop_front();
  }
  // Returns the rate per second. A value that did not exist then counts as 0.
  double PerSecond(uint64_t now_ns, size_t index, uint64_t value) const {
    if (kept_.empty() || now_ns <= kept_.front().first) return 0;
    const std::vector<uint64_t>& then = kept_.front().second;
    const double before = index < then.size() ? static_cast<double>(then[index]) : 0;
    return (static_cast<double>(value) - before) * static_cast<double>(kSecond) /
           static_cast<double>(now_ns - kept_.front().first);
  }

 private:
  std::deque<std::pair<uint64_t, std::vector<uint64_t>>> kept_;
};

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_EVENTS_RATES_H_
