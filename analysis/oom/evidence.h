// analysis/oom/evidence.h
//
// The numbers of one failed request: what the device held, for whom, and what the request needed.
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
  bool by_framework = false;  // its allocator failed, not the driver by itself
  bool is_pytorch = false;
  OomEvidence evidence;
  Fragmentation fragmentation;
  Ledger ledger;
  // Of evidence.outside_bytes what is no context and no code: allocations that could be elsewhere.
  uint64_t avoidable_outside_bytes = 0;
  // Of others, and of what is not told apart as much as contexts do not explain.
  uint64_t avoidable_others_bytes = 0;
};

OomFacts FactsOf(const Examination& examination, const FailedAllocation& failed);

// What PyTorch's allocator asks of the driver for a block of `bytes`
// (c10/cuda/CUDACachingAllocator.cpp, get_allocation_size).
uint64_t SegmentBytesFor(uint64_t bytes);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_EVIDENCE_H_
