// interop/torch/torch_event.h
//
// What PyTorch's memory snapshot consists of, before it is written: entries of a device's trace, and
// the segments and blocks that are there at its end.
//
// Thread safety: plain values.

#ifndef GMT_INTEROP_TORCH_TORCH_EVENT_H_
#define GMT_INTEROP_TORCH_TORCH_EVENT_H_

#include <cstdint>
#include <vector>

#include "analysis/trace/trace.h"

namespace gmt::interop {

// Such a trace comes back as it was, with nothing of our own.
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
    kOther,  // of an imported trace, in its own words
  };
  Action action = kAlloc;
  uint64_t address = 0;  // of kOutOfMemory: bytes that the device had free
  uint64_t size = 0;     // bytes of device memory; of kSnapshot: of all blocks
  uint64_t stream = 0;
  int64_t t_ns = 0;
  analysis::RowId row = analysis::kNoRow;  // the block's, or the driver memory's
  uint32_t index = 0;  // of kOutOfMemory, kSnapshot, kOther: into failed, snapshots, actions
  uint32_t stack = 0;  // 0: not known
};

inline bool IsOfSegment(TorchEvent::Action action) {
  return action >= TorchEvent::kSegmentAlloc && action <= TorchEvent::kSegmentUnmap;
}

struct TorchBlock {
  uint64_t address = 0, size = 0;
  analysis::RowId row = analysis::kNoRow;  // kNoRow: free
  bool pending = false;                    // freed, and other streams still use it
};

struct TorchSegment {
  uint64_t address = 0, size = 0;
  uint64_t stream = 0;
  uint64_t pool = 0;
  bool small = false;  // of the pool for requests of up to 1 MiB
  bool expandable = false;
  analysis::RowId row = analysis::kNoRow;  // the driver memory, the first where there are several
  uint32_t stack = 0;
  std::vector<TorchBlock> blocks;  // they adjoin, and sum to `size`
};

// Takes what a device's trace consists of, in order.
class TorchSink {
 public:
  virtual ~TorchSink() = default;
  // What follows belongs together up to the next call: a cut before it leaves both sides true.
  virtual void OnBoundary(int64_t t_ns) = 0;
  virtual void OnEvent(const TorchEvent& event) = 0;
};

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_EVENT_H_
