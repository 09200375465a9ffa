// analysis/trace/recorded_time.h
//
// Arithmetic with times from a file, which may have any value. Results saturate at the limits of 64
// bits.

#ifndef GMT_ANALYSIS_TRACE_RECORDED_TIME_H_
#define GMT_ANALYSIS_TRACE_RECORDED_TIME_H_

#include <cstdint>

namespace gmt::analysis {

// `by_ns` before `t_ns`.
inline int64_t Before(int64_t t_ns, uint64_t by_ns) {
  int64_t result;
  return __builtin_sub_overflow(t_ns, by_ns, &result) ? INT64_MIN : result;
}

// `by_ns` after `t_ns`.
inline int64_t After(int64_t t_ns, uint64_t by_ns) {
  int64_t result;
  return __builtin_add_overflow(t_ns, by_ns, &result) ? INT64_MAX : result;
}

// The time from the first to the second; 0 if the second is earlier.
inline uint64_t Between(int64_t from_ns, int64_t to_ns) {
  return to_ns < from_ns ? 0 : static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns);
}

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_RECORDED_TIME_H_
