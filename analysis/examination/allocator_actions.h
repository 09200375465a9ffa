// analysis/examination/allocator_actions.h
//
// Actions of a caching allocator that no event reports: retries, emptied caches and garbage
// collections, with their cost.
//
// An allocator calls the driver while it holds its device's lock. So all driver calls between two
// block events of a device belong to one call of the allocator, and their order identifies the
// action:
//
//   malloc failed, release, ..., malloc           retry; PyTorch counts it in num_alloc_retries
//   malloc failed, malloc failed, out of memory   retry that did not help, then the OOM
//   out of memory                                 the same under a limit set in the allocator,
//                                                 which refuses without calling the driver
//   malloc failed, out of memory                  OOM during the capture of a graph: not retried
//   release, ...                                  empty_cache
//   release, ..., malloc                          garbage collection, a retry under a limit below
//                                                 the device's memory, or empty_cache before a
//                                                 malloc: distinguished by the stack of the
//                                                 releases and the allocator's settings, else
//                                                 kRelease
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_EXAMINATION_ALLOCATOR_ACTIONS_H_
#define GMT_ANALYSIS_EXAMINATION_ALLOCATOR_ACTIONS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

struct AllocatorAction {
  enum Kind {
    kRetry,
    kEmptyCache,
    kGarbageCollection,
    kRelease,  // emptied or collected: the recorded events do not show which
    kOom,
  };
  Kind kind = kRetry;
  int32_t device = 0;
  uint32_t thread = 0;
  Step step = 0;     // when it began
  int64_t t_ns = 0;  // when it began
  uint64_t duration_ns = 0;
  // The size requested from the driver (retry, collection) or the allocator (OOM); else 0.
  uint64_t requested_bytes = 0;
  uint64_t released_bytes = 0;
  uint64_t releases = 0;     // calls: segments, or pages of expandable ones
  bool succeeded = true;     // for a retry: whether the driver granted the memory in the end
  bool under_limit = false;  // for a retry: refused by the allocator's own limit, not by the driver
  uint32_t stack = 0;        // of the request
};

// "retry", "empty_cache", "garbage_collection", "release", "oom".
std::string_view NameOf(AllocatorAction::Kind kind);

// Returns the actions ordered by their beginning.
std::vector<AllocatorAction> FindAllocatorActions(const Trace& trace,
                                                  const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_ALLOCATOR_ACTIONS_H_
