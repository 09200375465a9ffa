// format/time_range.h
//
// A part of a recording's time.
//
// Thread safety: plain values.

#ifndef GMT_FORMAT_TIME_RANGE_H_
#define GMT_FORMAT_TIME_RANGE_H_

#include <cstdint>

namespace gmt::format {

// In nanoseconds since the recording's start; both ends are included.
struct TimeRange {
  int64_t from_ns = INT64_MIN;
  int64_t to_ns = INT64_MAX;
};

}  // namespace gmt::format

#endif  // GMT_FORMAT_TIME_RANGE_H_
