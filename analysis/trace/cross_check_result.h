// analysis/trace/cross_check_result.h
//
// CrossCheckResult: the result of comparing CUPTI's memory records with the recorded calls
// (analysis/trace/cross_check.h computes it).
//
// Thread safety: plain values.

#ifndef GMT_ANALYSIS_TRACE_CROSS_CHECK_RESULT_H_
#define GMT_ANALYSIS_TRACE_CROSS_CHECK_RESULT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "format/kinds.h"

namespace gmt::analysis {

// An operation that only one side saw.
struct Unmatched {
  enum Side : uint8_t { kOnlyCupti, kOnlyOurs };
  Side side = kOnlyCupti;
  bool is_free = false;
  uint64_t address = 0;
  std::optional<uint64_t> size;
  int64_t t_ns = 0;
  Memory memory = MEMORY_UNSPECIFIED;
  std::optional<uint32_t> device;
  uint32_t stack = 0, api = 0;  // of our event
};

struct CrossCheckResult {
  bool was_made = false;                // whether CUPTI reported any memory
  uint64_t allocations = 0, frees = 0;  // seen by both
  uint64_t only_cupti = 0, only_ours = 0;
  uint64_t sizes_differ = 0;  // among those seen by both
  uint64_t pool_events = 0;   // pools that CUPTI saw created, destroyed or trimmed
  // CUPTI's arrays, whose handles are not addresses, module variables, which no call allocates, and
  // memory of the driver's own pools, which has no address.
  uint64_t not_comparable = 0;
  uint64_t not_recorded = 0;  // CUPTI's, in a heap that the recording leaves out by option
  // Our operations that CUPTI cannot have reported.
  uint64_t not_covered = 0;        // CUPTI has no records for them, or not always
  uint64_t while_off = 0;          // while it was off
  uint64_t behind_the_last = 0;    // after its last report
  uint64_t given_up = 0;           // dropped because too many were waiting
  std::vector<Unmatched> first;    // the first unmatched operations, ordered by time
  int64_t from_ns = 0, to_ns = 0;  // times of CUPTI's first and last report

  uint64_t matched() const { return allocations + frees; }
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_CROSS_CHECK_RESULT_H_
