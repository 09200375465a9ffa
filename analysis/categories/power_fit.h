// analysis/categories/power_fit.h
//
// PowerFit: whether y is independent of x, or linear or quadratic in it, computed from running
// sums. The simplest fit wins.
//
// Thread safety: one thread at a time. Cost: constant, independent of the number of pairs.

#ifndef GMT_ANALYSIS_CATEGORIES_POWER_FIT_H_
#define GMT_ANALYSIS_CATEGORIES_POWER_FIT_H_

#include <cmath>
#include <cstdint>

namespace gmt::analysis {

// Sums over all x. A pair with y = 0 needs no PowerFit::Add().
struct InputSums {
  double n = 0, x = 0, x2 = 0, x3 = 0, x4 = 0;

  void Add(double value) {
    const double square = value * value;
    n += 1, x += value, x2 += square, x3 += square * value, x4 += square * square;
  }
};

class PowerFit {
 public:
  void Add(double x, double y) { y_ += y, y2_ += y * y, xy_ += x * y, x2y_ += x * x * y; }
  double mean(const InputSums& x) const { return x.n == 0 ? 0 : y_ / x.n; }

  // y = offset + slope * x^power. `error`: the root mean square of the residuals, divided by the
  // mean of y.
  struct Line {
    int power = 0;
    double offset = 0, slope = 0, error = 0;

    double At(double x) const { return offset + slope * std::pow(x, power); }
  };
  Line Fit(const InputSums& x, int power) const;
  // Returns the fit of the lowest power whose error is below `tolerance` and which no higher power
  // improves on considerably; power -1 if there is none.
  Line Best(const InputSums& x, double tolerance) const;

 private:
  double y_ = 0, y2_ = 0, xy_ = 0, x2y_ = 0;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_CATEGORIES_POWER_FIT_H_
