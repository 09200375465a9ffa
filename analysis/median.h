// analysis/median.h
//
// The median of unsorted values. With an even number of values it is one of the two in the middle,
// not their mean, so that a report only shows values that occurred.

#ifndef GMT_ANALYSIS_MEDIAN_H_
#define GMT_ANALYSIS_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gmt::analysis {

// Returns the upper one of two values in the middle; Value() if there are no values.
template <typename Value>
Value UpperMedian(std::vector<Value> values) {
  if (values.empty()) return Value();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the lower one of two values in the middle; Value() if there are no values.
template <typename Value>
Value LowerMedian(std::vector<Value> values) {
  if (values.empty()) return Value();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_MEDIAN_H_
