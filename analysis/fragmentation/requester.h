// analysis/fragmentation/requester.h
//
// The requester of memory from an allocator; it determines which free memory can be used.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_FRAGMENTATION_REQUESTER_H_
#define GMT_ANALYSIS_FRAGMENTATION_REQUESTER_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Describes a request: it determines which free memory can be used.
struct Requester {
  std::optional<uint64_t> stream;  // nullopt: the stream with most memory
  std::optional<uint64_t> bytes;   // nullopt: any size
  // The request failed in PyTorch's allocator, which had released what it could and searched its
  // lists. So any memory without a block, or large enough, must be in a pool that the request may
  // not use.
  bool gave_up = false;
};

// The requester of a failed allocation. REQUIRES: `failed` belongs to `trace`.
Requester RequesterOf(const Trace& trace, const FailedAllocation& failed);

// The value of an option of PyTorch's allocator, "" if it is not set.
std::string_view AllocatorOption(const Trace& trace, std::string_view option);

// The number of graph captures in progress. PyTorch releases no memory during a capture.
uint64_t CapturesAt(const Trace& trace, int64_t t_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAGMENTATION_REQUESTER_H_
