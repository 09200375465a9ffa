// interop/torch_layout.h
//
// The state of device memory as segments that consist of blocks, as PyTorch's snapshot has it:
// blocks adjoin, gaps between them are inactive blocks, a block without known driver memory is a
// segment of its own.
//
// Thread safety: pure functions.

#ifndef GMT_INTEROP_TORCH_LAYOUT_H_
#define GMT_INTEROP_TORCH_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "analysis/trace.h"

namespace gmt::interop {

struct TorchBlock {
  uint64_t address = 0, size = 0;
  analysis::RowId row = analysis::kNoRow;  // kNoRow: free
};

struct TorchSegment {
  int32_t device = 0;
  uint64_t address = 0, size = 0;
  bool expandable = false;
  analysis::RowId row = analysis::kNoRow;  // the driver memory, the first where there are several
  std::vector<TorchBlock> blocks;
};

// The segments after `step`, by device and address.
std::vector<TorchSegment> SegmentsAfter(const analysis::Trace& trace, analysis::Step step);

// Where driver memory lies: its own address, or that of physical memory's mappings.
bool IsPlace(const analysis::Trace& trace, analysis::RowId row);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_LAYOUT_H_
