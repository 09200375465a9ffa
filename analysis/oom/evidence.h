// analysis/oom/evidence.h
//
// The numbers of one failed request: what the device held, by owner, and what the request needed.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_OOM_EVIDENCE_H_
#define GMT_ANALYSIS_OOM_EVIDENCE_H_

#include <cstdint>
#include <vector>

#include "analysis/fragmentation/fragmentation.h"
#include "analysis/ledger/ledger.h"
#include "analysis/oom/oom.h"

namespace gmt::analysis {

struct OomFacts {
  const FailedAllocation* failed = nullptr;
  bool by_framework = false;  // the framework's allocator failed, not just the driver
  bool is_pytorch = false;
  OomEvidence evidence;
  Fragmentation fragmentation;
  Ledger ledger;
  // The part of evidence.outside_bytes that is neither contexts nor code: allocations that could be
  // moved.
  uint64_t avoidable_outside_bytes = 0;
  // Other processes' bytes, including what contexts do not explain of the part that is not
  // distinguished.
  uint64_t avoidable_others_bytes = 0;
};

OomFacts FactsOf(const Examination& examination, const FailedAllocation& failed);

// The size that PyTorch's allocator requests from the driver for a block of `bytes`
// (c10/cuda/CUDACachingAllocator.cpp, get_allocation_size).
uint64_t SegmentBytesFor(uint64_t bytes);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_EVIDENCE_H_
