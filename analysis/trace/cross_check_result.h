// analysis/trace/cross_check_result.h
//
// CrossCheckResult: what comparing CUPTI's records of memory with the recorded calls came to
// (analysis/trace/cross_check.h makes it).
//
// Thread safety: plain values.

#ifndef GMT_ANALYSIS_TRACE_CROSS_CHECK_RESULT_H_
#define GMT_ANALYSIS_TRACE_CROSS_CHECK_RESULT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "format/kinds.h"

namespace gmt::analysis {

// What one side alone saw.
struct Unmatched {
  enum Side : uint8_t { kOnlyCupti, kOnlyOurs };
  Side side = kOnlyCupti;
  bool is_free = false;
  uint64_t address = 0;
  std::optional<uint64_t> size;
  int64_t t_ns = 0;
  Memory memory = MEMORY_UNSPECIFIED;
  std::optional<uint32_t> device;
  uint32_t stack = 0, api = 0;  // of ours
};

struct CrossCheckResult {
  bool was_made = false;                // CUPTI told of memory
  uint64_t allocations = 0, frees = 0;  // that both saw
  uint64_t only_cupti = 0, only_ours = 0;
  uint64_t sizes_differ = 0;  // of those that both saw
  uint64_t pool_events = 0;   // of CUPTI: pools made, destroyed, trimmed
  // Of CUPTI: arrays, whose handles are no addresses, and variables of modules, which no call allocates.
  uint64_t not_comparable = 0;
  uint64_t not_recorded = 0;  // of CUPTI, of a heap that the recording leaves out by option
  // Ours that CUPTI cannot have told of.
  uint64_t not_covered = 0;        // of kinds that it has no records for
  uint64_t while_off = 0;          // while it was not recording
  uint64_t behind_the_last = 0;    // after the last that it told
  uint64_t given_up = 0;           // too many waited
  std::vector<Unmatched> first;    // the first that only one side saw, in order of time
  int64_t from_ns = 0, to_ns = 0;  // from CUPTI's first to its last

  uint64_t matched() const { return allocations + frees; }
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_CROSS_CHECK_RESULT_H_
