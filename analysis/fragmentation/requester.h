// analysis/fragmentation/requester.h
//
// Who asks an allocator for memory: that decides which free memory it can have.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_FRAGMENTATION_REQUESTER_H_
#define GMT_ANALYSIS_FRAGMENTATION_REQUESTER_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Who asks for memory: it decides which free memory can be had.
struct Requester {
  std::optional<uint64_t> stream;  // nullopt: the one with most memory
  std::optional<uint64_t> bytes;   // nullopt: of any size
  // It is PyTorch's allocator, which gave back what it could and looked through its lists before it
  // gave up: what is still without a block, or would have served, is in a pool that it may not use.
  bool gave_up = false;
};

// Who failed. REQUIRES: `failed` is of the trace.
Requester RequesterOf(const Trace& trace, const FailedAllocation& failed);

// The value of an option of PyTorch's allocator, "" where it is not set.
std::string_view AllocatorOption(const Trace& trace, std::string_view option);

// How many captures into graphs are under way: PyTorch gives nothing back while one is.
uint64_t CapturesAt(const Trace& trace, int64_t t_ns);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_FRAGMENTATION_REQUESTER_H_
