// analysis/report/allocators.h
//
// Which allocator provides memory: a framework's caching allocator, its private pools (of graphs,
// and torch.cuda.MemPool with an allocator of its own), stream-ordered pools (cudaMallocAsync), the
// driver itself, virtual memory management (cuMemCreate), managed memory, or pinned host memory.
// Also computes the largest request that would succeed at a given moment.
//
//   live      peak      allocator
//   9.81 GiB  11.2 GiB  caching allocator (pytorch)     its blocks
//   2.00 GiB  2.00 GiB  cudaMalloc                      driver memory that holds no blocks
//
// Each byte counts once, for the allocator that the program called: memory that holds a framework's
// blocks counts for the framework.
//
// Thread safety: pure functions. Cost: one walk over the steps of a trace.

#ifndef GMT_ANALYSIS_REPORT_ALLOCATORS_H_
#define GMT_ANALYSIS_REPORT_ALLOCATORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/trace/row_kinds.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"
#include "symbols/frame_rules.h"

namespace gmt::analysis {

struct AllocatorUse {
  int32_t device = 0;  // kHostDevice: host memory
  std::string
      name;  // "caching allocator (pytorch)", "cudaMallocAsync", "MemPool (libpool.so)", ...
  uint64_t live_bytes = 0, live_count = 0;  // at the device's instant
  uint64_t peak_bytes = 0;                  // the maximum over the whole recording
  int64_t peak_t_ns = 0;
};

// Sorted by device, then by largest peak. `instants`: the step to report for each device.
std::vector<AllocatorUse> FindAllocators(const Trace& trace, const RowKinds& kinds,
                                         const format::Definitions& definitions,
                                         const symbols::FrameRules& rules,
                                         const std::map<int32_t, Step>& instants);

// The memory available to a request on a GPU at some moment.
struct Room {
  int32_t device = 0;
  std::optional<uint64_t> total_bytes;
  // From the last sample before the moment and what was allocated and freed since; nullopt without
  // a sample.
  std::optional<uint64_t> free_bytes;
  uint64_t largest_cached_bytes = 0;  // the largest free block of a framework's allocator
  uint64_t releasable_bytes = 0;      // what the allocator would release to the driver to serve a
                                      // request

  // The largest request that would succeed. If free_bytes is unknown, a lower bound.
  uint64_t largest_request() const;
};

Room RoomAfter(const Examination& examination, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_ALLOCATORS_H_
