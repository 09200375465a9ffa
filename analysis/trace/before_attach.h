// analysis/trace/before_attach.h
//
// Memory that was there before somebody attached to the program: what PyTorch's allocator told of when
// the recording began, and what was freed since and nobody had told of.
//
//   blocks told at attach      ALLOC, api "(before attach)", no stack     bytes, of them freed since
//   frees of what nobody told  FREE with a size                           untold
//
// Whose it was cannot be known: no stack was seen. Told are the blocks of frameworks and driver memory
// that is no segment of theirs, so that no byte counts twice.
//
// Thread safety: pure functions. Cost: linear in rows.

#ifndef GMT_ANALYSIS_TRACE_BEFORE_ATTACH_H_
#define GMT_ANALYSIS_TRACE_BEFORE_ATTACH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Of a heap on a device.
struct HeldBefore {
  int32_t device = 0;
  std::string heap;  // "": what the device said it used, and nobody told of; others may use it, too
  uint64_t bytes = 0, blocks = 0;              // that were told of
  uint64_t freed_bytes = 0, freed_blocks = 0;  // of them, since
  // Freed since, and nobody had told of them.
  uint64_t unknown_freed_bytes = 0, unknown_freed_blocks = 0;
};

// Whether somebody attached for this recording, and the program told of what was there.
bool WasAttached(const Trace& trace);

// By device and heap; empty for a recording that nobody attached.
std::vector<HeldBefore> FindHeldBefore(const Trace& trace);

// Blocks that were told of and are held at the end, of exactly the sizes of those that the stacks
// allocated since, on the same device and in the same heap: perhaps they come from there, too.
struct LikeBefore {
  uint64_t bytes = 0, blocks = 0;
};
LikeBefore FindLikeBefore(const Trace& trace, const std::vector<uint32_t>& stacks);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_BEFORE_ATTACH_H_
