// analysis/trace/captures.h
//
// Which stream captures were in progress when something was born.
//
// Thread safety: pure function. Cost: O(log captures).

#ifndef GMT_ANALYSIS_TRACE_CAPTURES_H_
#define GMT_ANALYSIS_TRACE_CAPTURES_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Few threads capture at once. An older capture that has not ended is not considered any more.
inline constexpr size_t kCapturesAtOnce = 64;

// Whether `matches(capture)` is true for one of the captures in progress at the step `birth`.
template <typename Matches>
bool AnyCaptureAt(const Trace& trace, Step birth, const Matches& matches) {
  const std::vector<Capture>& captures = trace.captures;
  const auto after = std::partition_point(captures.begin(), captures.end(),
                                          [&](const Capture& c) { return c.begin < birth; });
  const auto before = static_cast<size_t>(after - captures.begin());
  for (size_t i = before; i > before - std::min(before, kCapturesAtOnce); --i) {
    if (birth <= captures[i - 1].end && matches(captures[i - 1])) return true;
  }
  return false;
}

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_CAPTURES_H_
