// analysis/trace/stream_info.h
//
// What a recording contains about streams beside memory: which existed, and what the host waited
// for. Trace (analysis/trace/trace.h) carries it; StreamLog (analysis/trace/stream_log.h) computes
// it.
//
// Thread safety: plain data.

#ifndef GMT_ANALYSIS_TRACE_STREAM_INFO_H_
#define GMT_ANALYSIS_TRACE_STREAM_INFO_H_

#include <cstdint>
#include <optional>

namespace gmt::analysis {

// A stream from its creation to its destruction. Handles are reused.
struct StreamInfo {
  uint64_t handle = 0;
  int64_t created_ns = INT64_MIN;  // INT64_MIN: not seen
  int64_t destroyed_ns = INT64_MAX;
  std::optional<int32_t> priority;                // lower is more urgent
  std::optional<bool> blocking;                   // waits for the legacy default stream
  uint32_t name = 0;                              // string id
  uint64_t records = 0, waits = 0, launches = 0;  // of CUDA events and graphs
  uint64_t copies = 0, copied_bytes = 0, copy_ns = 0;
  uint64_t syncs = 0, sync_ns = 0;  // of the host for this stream

  bool ExistedAt(int64_t t_ns) const { return created_ns <= t_ns && t_ns < destroyed_ns; }
};

// Host time spent in calls of one function from one stack.
struct HostCost {
  enum Kind : uint8_t { kSync, kAllocation, kFree };
  Kind kind = kSync;
  uint32_t api = 0, stack = 0;  // ids of a string and a stack
  uint64_t calls = 0, total_ns = 0, longest_ns = 0;
  // For allocations and frees: the time spent waiting for the device, as far as observed.
  uint64_t syncs = 0, sync_ns = 0;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_STREAM_INFO_H_
