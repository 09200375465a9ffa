// interop/torch_snapshot.h
//
// A recording as PyTorch's memory snapshot: the pickle that torch.cuda.memory._dump_snapshot()
// writes and that pytorch.org/memory_viz and `python -m torch.cuda._memory_viz` read.
//
//   recording                          snapshot
//   driver memory with blocks in it    segment_alloc ... segment_free, a segment of its blocks and
//                                      the gaps between
//   driver memory without              the same, with one alloc and one block of its full size
//   mapped physical memory             the same at the address it is mapped at; with blocks in it
//                                      segment_map/unmap, adjoining ranges being one expandable
//                                      segment
//   block of a framework               alloc, free_requested + free_completed
//   failed allocation                  oom
//
// Readers rely on: every live block lies in a segment; a segment's blocks adjoin and sum to its
// size; a segment_free names the address of a segment_alloc. Host memory and physical memory that
// is not mapped have no place in the format and are left out; the result says how much.
//
// Thread safety: pure function.

#ifndef GMT_INTEROP_TORCH_SNAPSHOT_H_
#define GMT_INTEROP_TORCH_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <vector>

#include "analysis/frames.h"
#include "analysis/trace.h"

namespace gmt::interop {

struct TorchSnapshotSummary {
  uint64_t events = 0;
  uint64_t segments = 0, blocks = 0;
  uint64_t host_bytes_left_out = 0;      // held at the end
  uint64_t unmapped_bytes_left_out = 0;  // of physical memory held at the end
};

// The frames to write for a stack, innermost first: all of them, or without noise.
using StackFrames = std::function<std::vector<analysis::FrameText>(uint32_t stack)>;

// Writes the trace of all events and the state after the last one. Errors: those of the stream.
TorchSnapshotSummary WriteTorchSnapshot(const analysis::Trace& trace, const StackFrames& frames_of,
                                        std::ostream& out);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_SNAPSHOT_H_
