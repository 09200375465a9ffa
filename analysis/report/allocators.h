// analysis/report/allocators.h
//
// Who hands out memory: a framework's caching allocator, its private pools (of graphs, and
// torch.cuda.MemPool with an allocator of its own), stream-ordered pools (cudaMallocAsync), the driver
// itself, virtual memory management (cuMemCreate), managed memory, and pinned memory of the host. And
// how large a request could be at a moment.
//
//   live      peak      allocator
//   9.81 GiB  11.2 GiB  caching allocator (pytorch)     its blocks
//   2.00 GiB  2.00 GiB  cudaMalloc                      what holds none of them
//
// Each byte counts once, for whom the program asked: memory that holds a framework's blocks is theirs.
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
#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct AllocatorUse {
  int32_t device = 0;  // kHostDevice: host memory
  std::string
      name;  // "caching allocator (pytorch)", "cudaMallocAsync", "MemPool (libpool.so)", ...
  uint64_t live_bytes = 0, live_count = 0;  // at the device's instant
  uint64_t peak_bytes = 0;                  // the most in the whole recording
  int64_t peak_t_ns = 0;
};

// By device, and on each the largest peak first. `instants`: the step of each device that is asked for.
std::vector<AllocatorUse> FindAllocators(const Examination& examination,
                                         const std::map<int32_t, Step>& instants);

// What a request could have on a GPU at a moment.
struct Room {
  int32_t device = 0;
  std::optional<uint64_t> total_bytes;
  // By the last sample before the moment and what was taken and given back since; nullopt: no sample.
  std::optional<uint64_t> free_bytes;
  uint64_t largest_cached_bytes = 0;  // the largest free piece of a framework's allocator
  uint64_t releasable_bytes = 0;  // that the allocator would give back to the driver for a request

  // The largest request that would succeed. Without free_bytes: at least that much.
  uint64_t largest_request() const;
};

Room RoomAfter(const Examination& examination, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_REPORT_ALLOCATORS_H_
