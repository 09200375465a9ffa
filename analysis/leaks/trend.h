// analysis/leaks/trend.h
//
// The statistics for judging growth: how fast, how certain, and whether it continues.
//
// Thread safety: pure functions. Cost: TheilSen examines all pairs; callers keep series short.

#ifndef GMT_ANALYSIS_LEAKS_TREND_H_
#define GMT_ANALYSIS_LEAKS_TREND_H_

#include <cstdint>
#include <vector>

namespace gmt::analysis {

struct Trend {
  double slope = 0, low = 0, high = 0;  // per index; 95 % interval
};

// The median of the slopes of all pairs of points, and Sen's interval for it. Outliers, up to a
// third of the points, do not affect it. 0 for fewer than two points.
Trend TheilSen(const std::vector<double>& series);

// The mean of the series and its interval, from the variance of its values: for random events.
Trend MeanOf(const std::vector<double>& series);

// The number of independent events to which events at equal intervals correspond: a hundred in one
// interval are one.
double IndependentEvents(const std::vector<double>& events);

// Laplace's test of events in equal intervals: approximately normal if the rate is constant, below
// 0 if events become rarer, above 0 if more frequent. 0 without events.
double RateTrend(const std::vector<double>& events);

// The probability that, of `events` at a constant rate, none falls into the last `share` of the
// time.
double ChanceOfSilence(double events, double share);

// Rounds to a number of bytes or blocks; 0 for negative values.
uint64_t Whole(double value);

struct Rises {
  double up = 0, down = 0;  // sums of the differences between neighbours
  uint32_t rising = 0, pairs = 0;
};
Rises RisesOf(const std::vector<double>& series);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_TREND_H_
