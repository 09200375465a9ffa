// preload/torch/record_block.h
//
// Records what PyTorch's caching allocator reports about its blocks. The allocator reports under
// its own lock, at the end of each allocation and each free, so the order of a device's reports is
// the order of what happened there.
//
// `caller` is an address in the library that made the report.
//
// Thread safety: all functions may be called from any thread. None takes a lock or allocates, and
// none enters the kernel except for what is seen for the first time.

#ifndef GMT_PRELOAD_TORCH_RECORD_BLOCK_H_
#define GMT_PRELOAD_TORCH_RECORD_BLOCK_H_

#include <stdint.h>

namespace gmt::preload {

// Bytes that the allocator has handed out, and bytes that it has taken from the driver, on this
// device.
struct TorchTotals {
  uint64_t allocated, reserved;
};

// c10::Device as functions receive it (c10/core/Device.h, PyTorch 2.11; since 1.6): a type and an
// index of one byte each.
struct TorchDevice {
  int8_t type, index;

  bool is_cuda() const { return type == 1; }
};

// size > 0: the block was handed out; < 0: it was returned.
void RecordBlock(uint64_t address, int64_t size, const TorchTotals& totals, TorchDevice device,
                 const void* caller);
void RecordOutOfMemory(int64_t size, const TorchTotals& totals, TorchDevice device,
                       const void* caller);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_RECORD_BLOCK_H_
