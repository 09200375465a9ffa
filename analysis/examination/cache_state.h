// analysis/examination/cache_state.h
//
// The state of a caching allocator at one moment, by pool. Its driver memory is allocated, awaits
// streams, or is cached. empty_cache() would release the cached part that lies in segments without
// blocks.
//
//   segment A |--live--|...free...|--pending--|      segment B |........free.........|
//              allocated  pinned    awaiting                      releasable
//
// Thread safety: pure function.

#ifndef GMT_ANALYSIS_EXAMINATION_CACHE_STATE_H_
#define GMT_ANALYSIS_EXAMINATION_CACHE_STATE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// A pool of PyTorch's allocator. Small segments have 2 MiB (c10/cuda/CUDACachingAllocator.cpp,
// kSmallBuffer) and hold blocks up to 1 MiB. Private pools (of graphs and of the program) are known
// only if the recording names them, which only imported ones do.
struct PoolState {
  enum Kind { kSmall, kLarge, kPrivate };
  Kind kind = kSmall;
  uint64_t segments = 0;    // pieces of driver memory: segments, or pages of expandable ones
  uint64_t blocks = 0;      // live
  uint64_t reserved = 0;    // bytes; = allocated + pending + releasable + pinned
  uint64_t allocated = 0;   // in live blocks
  uint64_t pending = 0;     // freed, awaiting a stream
  uint64_t releasable = 0;  // in segments and pages without a block
  uint64_t pinned = 0;      // cached beside blocks: only another allocation can use it
};

// "small", "large", "private".
std::string_view NameOf(PoolState::Kind kind);

// Returns the pools with segments on `device` after `step`.
std::vector<PoolState> PoolsAfter(const Trace& trace, int32_t device, Step step);

// Memory that a caching allocator reserved for one stream. A segment belongs to the stream whose
// blocks it holds; no other stream may use its free space.
struct StreamMemory {
  int32_t device = 0;
  uint64_t stream = 0;
  uint64_t segments = 0;
  uint64_t reserved = 0, allocated = 0, pending = 0;

  uint64_t free() const { return reserved - allocated - pending; }
};

// Sorted by reserved bytes, largest first. Omits segments whose stream is unknown.
std::vector<StreamMemory> MemoryByStream(const Trace& trace, int32_t device, Step step);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_CACHE_STATE_H_
