#include "analysis/categories/power_fit.h"

#include <algorithm>

namespace gmt::analysis {

PowerFit::Line PowerFit::Fit(const InputSums& x, int power) const {
  Line line;
  line.power = power;
  if (x.n == 0 || y_ == 0) return line;
  const double mean_y = y_ / x.n;
  const double variance_y = y2_ / x.n - mean_y * mean_y;
  double left = variance_y;
  line.offset = mean_y;
  if (power > 0) {
    const double mean_z = (power == 1 ? x.x : x.x2) / x.n;
    const double variance_z = (power == 1 ? x.x2 : x.x4) / x.n - mean_z * mean_z;
    const double covariance = (power == 1 ? xy_ : x2y_) / x.n - mean_z * mean_y;
    if (variance_z > 0) {
      line.slope = covariance / variance_z;
      line.offset = mean_y - line.slope * mean_z;
      left = variance_y - line.slope * covariance;
    }
  }
  // With equal values, rounding of the sums may leave a negative residual.
  line.error = std::sqrt(std::max(left, 0.0)) / mean_y;
  return line;
}

PowerFit::Line PowerFit::Best(const InputSums& x, double tolerance) const {
  // A higher power is considered only above the first fraction of the tolerance, and must reduce
  // the error to the second fraction.
  constexpr double kDoubt = 0.2, kBetter = 0.25;
  const Line lines[] = {Fit(x, 0), Fit(x, 1), Fit(x, 2)};
  for (int power = 0; power < 3; ++power) {
    const Line& line = lines[power];
    if (line.error > tolerance || line.slope < 0) continue;
    const bool is_bettered = line.error > kDoubt * tolerance &&
                             std::any_of(lines + power + 1, lines + 3, [&](const Line& other) {
                               return other.slope > 0 && other.error < kBetter * line.error;
                             });
    if (!is_bettered) return line;
  }
  Line none;
  none.power = -1;
  return none;
}

}  // namespace gmt::analysis
