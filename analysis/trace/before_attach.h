// analysis/trace/before_attach.h
//
// Memory allocated before gpumemtrace attached to the program: what PyTorch's allocator reported
// when the recording began, and what was freed since without having been reported.
//
//   blocks reported at attach   ALLOC, api "(before attach)", no stack   bytes; some freed since
//   frees of unreported memory  FREE with a size                         unknown_freed
//
// No stack was recorded for it, so its owner is unknown. The report covers blocks of frameworks and
// driver memory that is not one of their segments, so that no byte counts twice.
//
// Thread safety: pure functions. Cost: linear in rows.

#ifndef GMT_ANALYSIS_TRACE_BEFORE_ATTACH_H_
#define GMT_ANALYSIS_TRACE_BEFORE_ATTACH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::analysis {

// Memory of one heap on one device.
struct HeldBefore {
  int32_t device = 0;
  std::string heap;  // "": device memory in use at attach that was not reported; it may belong to
                     // others
  uint64_t bytes = 0, blocks = 0;              // that were reported
  uint64_t freed_bytes = 0, freed_blocks = 0;  // the part of those that was freed since
  // Freed since, without having been reported.
  uint64_t unknown_freed_bytes = 0, unknown_freed_blocks = 0;
};

// Whether the recording began with an attach and the program reported what it held.
bool WasAttached(const Trace& trace);

// Sorted by device and heap; empty for a recording without an attach.
std::vector<HeldBefore> FindHeldBefore(const Trace& trace);

// Reported blocks that are held at the end and have exactly the size of a block that one of the
// stacks allocated since, on the same device and in the same heap. They may come from the same
// code.
struct LikeBefore {
  uint64_t bytes = 0, blocks = 0;
};
LikeBefore FindLikeBefore(const Trace& trace, const std::vector<uint32_t>& stacks);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_BEFORE_ATTACH_H_
