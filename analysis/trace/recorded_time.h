// analysis/trace/recorded_time.h
//
// Arithmetic with times as they stand in a file, where they may be anything: results stay within what
// 64 bits hold.

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

// From the first to the second; 0 where that comes first.
inline uint64_t Between(int64_t from_ns, int64_t to_ns) {
  return to_ns < from_ns ? 0 : static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns);
}

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_RECORDED_TIME_H_
