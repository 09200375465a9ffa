// analysis/report/stream_report.h
//
// The part of a report (analysis/report/report.h) about streams: memory held after its free because
// work was pending, free memory that only one stream may use, host time spent waiting for the
// device, and the streams themselves. docs/streams.md defines each figure and its source.
//
// A piece is held from its free until
//   memory of a stream-ordered pool   its stream was known to be done (Rows::DoneAt)
//   a block of a framework            its allocator saw all other streams done (T7); not held at
//                                     all if the free waited for none
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_REPORT_STREAM_REPORT_H_
#define GMT_ANALYSIS_REPORT_STREAM_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/examination/cache_state.h"
#include "analysis/examination/replay.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/stream_info.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

// Pieces that were held after their free.
struct Held {
  uint64_t frees = 0, bytes = 0;
  double byte_ns = 0;  // bytes times the nanoseconds that they were held
  uint64_t longest_ns = 0;
  uint64_t still = 0;  // the part of these held until the end of the recording

  void Add(uint64_t size, uint64_t held_ns, bool to_the_end);
  // Mean over bytes.
  double mean_ns() const { return bytes == 0 ? 0 : byte_ns / static_cast<double>(bytes); }
};

struct HeldHeap {
  int32_t device = 0;
  std::string heap;
  Held held;
  uint64_t unknown_frees = 0, unknown_bytes = 0;  // held for an unknown time
  uint64_t peak_bytes = 0;                        // the most held at one time
  int64_t peak_t_ns = 0;
  // The maximum of live bytes, and of live or held bytes. The difference is the cost of pending
  // work.
  uint64_t peak_live_bytes = 0, peak_occupied_bytes = 0;
};

struct HeldRow {
  int32_t device = 0;
  std::string heap;
  uint32_t stack = 0;  // of the allocation
  uint64_t stream = 0;
  bool has_stream = false;
  Held held;
  std::vector<FrameText> frames;  // innermost first
};

struct StreamRow {
  StreamInfo info;
  std::string name;  // empty if it has none
};

struct HostCostRow {
  // A program may call from hundreds of thousands of places, more than can be read.
  static constexpr size_t kMaxDescribed = 4096;

  HostCost cost;
  std::string api;
  std::vector<FrameText> frames;  // of the costliest rows; empty for the others
};

struct StreamReport {
  std::vector<HeldHeap> heaps;          // with pieces that were or may have been held
  std::vector<HeldRow> rows;            // most byte-nanoseconds first
  std::vector<StreamRow> streams;       // in the order in which they were seen
  std::vector<StreamMemory> memory;     // of frameworks' allocators, at the devices' instants
  std::vector<HostCostRow> host_costs;  // most time first
  CrossCheckResult cross_check;
  int64_t duration_ns = 0;  // of the recording
};

// `instants`: the step at which the report shows each device. Counts the frees in the window; host
// time and streams cover the whole recording.
StreamReport MakeStreamReport(const Trace& trace, const format::Definitions& definitions,
                              const std::map<int32_t, Step>& instants, const Window& window,
                              const symbols::FrameRules& rules);

// Returns the stream that had the handle at that time, otherwise the last one; nullptr if none is
// known.
const StreamInfo* StreamAt(const Trace& trace, uint64_t handle, int64_t t_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_STREAM_REPORT_H_
