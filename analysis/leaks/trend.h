// analysis/leaks/trend.h
//
// The statistics by which growth is judged: how fast, how sure, and whether it goes on.
//
// Thread safety: pure functions. Cost: TheilSen looks at all pairs; callers keep series short.

#ifndef GMT_ANALYSIS_LEAKS_TREND_H_
#define GMT_ANALYSIS_LEAKS_TREND_H_

#include <cstdint>
#include <vector>

namespace gmt::analysis {

struct Trend {
  double slope = 0, low = 0, high = 0;  // per index; 95 %
};

// The median of the slopes of all pairs of points, and Sen's interval for it. Outliers, up to a third
// of the points, do not move it. 0 for fewer than two points.
Trend TheilSen(const std::vector<double>& series);

// The mean of the series and its interval, from how its values scatter: for what comes by chance.
Trend MeanOf(const std::vector<double>& series);

// As how many independent events those of equal intervals count: a hundred in one interval are one.
double IndependentEvents(const std::vector<double>& events);

// Laplace's test of events in equal intervals: about normal where they come at a constant rate, below
// 0 where they come ever rarer, above 0 where ever more often. 0 without events.
double RateTrend(const std::vector<double>& events);

// How likely it is that, of `events` at a constant rate, none falls into the last `share` of the time.
double ChanceOfSilence(double events, double share);

// As a number of bytes or blocks; 0 for what is negative.
uint64_t Whole(double value);

struct Rises {
  double up = 0, down = 0;  // sums of the differences of neighbours
  uint32_t rising = 0, pairs = 0;
};
Rises RisesOf(const std::vector<double>& series);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_TREND_H_
