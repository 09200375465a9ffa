// interop/torch/torch_event.h
//
// The parts of PyTorch's memory snapshot before it is written: the entries of a device's trace, and
// the segments and blocks at its end.
//
// Thread safety: plain values.

#ifndef GMT_INTEROP_TORCH_TORCH_EVENT_H_
#define GMT_INTEROP_TORCH_TORCH_EVENT_H_

#include <cstdint>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::interop {

// An imported snapshot is exported as it was, without additions of ours.
inline bool IsImportedSnapshot(const analysis::Trace& trace) {
  return trace.imported_from == "torch snapshot";
}

struct TorchEvent {
  enum Action : uint8_t {
    kAlloc,
    kFreeRequested,
    kFreeCompleted,
    kSegmentAlloc,
    kSegmentFree,
    kSegmentMap,
    kSegmentUnmap,
    kOutOfMemory,
    kSnapshot,
    kOther,  // of an imported trace, with its own name
  };
  Action action = kAlloc;
  uint64_t address = 0;  // for kOutOfMemory: free bytes of the device
  uint64_t size = 0;     // bytes of device memory; for kSnapshot: of all blocks
  uint64_t stream = 0;
  int64_t t_ns = 0;
  analysis::RowId row = analysis::kNoRow;  // of the block or the driver memory
  uint32_t index = 0;  // for kOutOfMemory, kSnapshot, kOther: index into failed, snapshots, actions
  uint32_t stack = 0;  // 0: unknown
};

inline bool IsOfSegment(TorchEvent::Action action) {
  return action >= TorchEvent::kSegmentAlloc && action <= TorchEvent::kSegmentUnmap;
}

struct TorchBlock {
  uint64_t address = 0, size = 0;
  analysis::RowId row = analysis::kNoRow;  // kNoRow: free
  bool pending = false;                    // freed, but other streams still use it
};

struct TorchSegment {
  uint64_t address = 0, size = 0;
  uint64_t stream = 0;
  uint64_t pool = 0;
  bool small = false;  // from the pool for requests of up to 1 MiB
  bool expandable = false;
  analysis::RowId row = analysis::kNoRow;  // the driver memory, the first if there are several
  uint32_t stack = 0;
  std::vector<TorchBlock> blocks;  // adjoining; they add up to `size`
};

// Receives the entries of a device's trace, in order.
class TorchSink {
 public:
  virtual ~TorchSink() = default;
  // The events up to the next call belong together: a trace that is cut at a boundary is
  // consistent.
  virtual void OnBoundary(int64_t t_ns) = 0;
  virtual void OnEvent(const TorchEvent& event) = 0;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_EVENT_H_
