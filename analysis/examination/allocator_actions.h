// analysis/examination/allocator_actions.h
//
// What a caching allocator did that no event tells: retries, emptied caches, garbage collections,
// and what each of them cost.
//
// An allocator asks the driver while it holds its device's lock. So the calls between two block
// events of a device are those of one entry into the allocator, and their order says which:
//
//   malloc failed, release, ..., malloc           retry, of which PyTorch counts num_alloc_retries
//   malloc failed, malloc failed, out of memory   retry that did not help, and the OOM
//   out of memory                                 the same under a limit of the allocator's own, which
//                                                 refuses without asking the driver
//   malloc failed, out of memory                  OOM during the capture of a graph: not retried
//   release, ...                                  empty_cache
//   release, ..., malloc                          garbage collection, a retry under a limit below the
//                                                 device's memory, or empty_cache before a malloc:
//                                                 told apart by the stack of the releases and by the
//                                                 allocator's settings, else kRelease
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
    kRelease,  // emptied or collected: what was seen leaves it open
    kOom,
  };
  Kind kind = kRetry;
  int32_t device = 0;
  uint32_t thread = 0;
  Step step = 0;     // of its beginning
  int64_t t_ns = 0;  // of its beginning
  uint64_t duration_ns = 0;
  // What was asked for: of the driver in a retry and a collection, of the allocator in an OOM; else 0.
  uint64_t requested_bytes = 0;
  uint64_t released_bytes = 0;
  uint64_t releases = 0;  // calls: segments, or pages of expandable ones
  bool succeeded = true;  // of a retry: the driver gave memory in the end
  bool under_limit =
      false;           // of a retry: the driver had not refused, the allocator's own limit had
  uint32_t stack = 0;  // who asked
};

// "retry", "empty_cache", "garbage_collection", "release", "oom".
std::string_view NameOf(AllocatorAction::Kind kind);

// In order of their beginning.
std::vector<AllocatorAction> FindAllocatorActions(const Trace& trace,
                                                  const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_EXAMINATION_ALLOCATOR_ACTIONS_H_
