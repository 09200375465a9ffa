#include "analysis/leaks/trend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gmt::analysis {
namespace {

constexpr double kNormal95 = 1.96;

// Student's t at 97.5 %, by degrees of freedom: an expansion around the normal quantile.
double Student95(double freedom) {
  const double z = kNormal95;
  return z + (z * z * z + z) / (4 * freedom) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * freedom * freedom) +
         (3 * std::pow(z, 7) + 19 * std::pow(z, 5) + 17 * z * z * z - 15 * z) /
             (384 * freedom * freedom * freedom);
}

}  // namespace

Trend TheilSen(const std::vector<double>& series) {
  const size_t n = series.size();
  if (n < 2) return {};
  std::vector<double> slopes;
  slopes.reserve(n * (n - 1) / 2);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j)
      slopes.push_back((series[j] - series[i]) / static_cast<double>(j - i));
  }
  std::sort(slopes.begin(), slopes.end());
  const auto count = static_cast<double>(slopes.size());
  const auto points = static_cast<double>(n);
  // Kendall's variance of the number of rising pairs, without ties.
  const double spread = kNormal95 * std::sqrt(points * (points - 1) * (2 * points + 5) / 18);
  const auto at = [&](double rank) {
    return slopes[static_cast<size_t>(std::clamp(rank, 0.0, count - 1))];
  };
  return {(at((count - 1) / 2) + at(count / 2)) / 2, at((count - spread) / 2),
          at((count + spread) / 2)};
}

Trend MeanOf(const std::vector<double>& series) {
  if (series.empty()) return {};
  const auto n = static_cast<double>(series.size());
  double sum = 0, squares = 0;
  for (double value : series) sum += value;
  const double mean = sum / n;
  if (series.size() < 2) return {mean, mean, mean};
  for (double value : series) squares += (value - mean) * (value - mean);
  const double half = Student95(n - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

double IndependentEvents(const std::vector<double>& events) {
  double sum = 0, squares = 0;
  for (double count : events) {
    sum += count;
    squares += count * count;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

double RateTrend(const std::vector<double>& events) {
  const auto bins = static_cast<double>(events.size());
  double count = 0, moment = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    count += events[i];
    moment += events[i] * (static_cast<double>(i) + 0.5);
  }
  if (count <= 0 || events.size() < 2) return 0;
  return (moment / count / bins - 0.5) * std::sqrt(12 * IndependentEvents(events));
}

double ChanceOfSilence(double events, double share) {
  return std::pow(1 - std::clamp(share, 0.0, 1.0), events);
}

uint64_t Whole(double value) {
  constexpr double kMost = 9e18;
  return value > 0 ? static_cast<uint64_t>(std::llround(std::min(value, kMost))) : 0;
}

Rises RisesOf(const std::vector<double>& series) {
  Rises rises;
  for (size_t i = 1; i < series.size(); ++i) {
    const double change = series[i] - series[i - 1];
    (change > 0 ? rises.up : rises.down) += std::abs(change);
    rises.rising += change > 0 ? 1 : 0;
    ++rises.pairs;
  }
  return rises;
}

}  // namespace gmt::analysis
