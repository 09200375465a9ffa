// preload/torch/record_block.h
//
// What PyTorch's caching allocator reports of its blocks becomes events. It reports under its own
// lock, at the end of each allocation and each free: the order of the reports of a device is the
// order of what happened there.
//
// `caller` is an address in the library that made the report.
//
// Thread safety: all functions from any thread. Nothing here takes a lock, allocates, or enters the
// kernel, but for what is seen for the first time.

#ifndef GMT_PRELOAD_TORCH_RECORD_BLOCK_H_
#define GMT_PRELOAD_TORCH_RECORD_BLOCK_H_

#include <stdint.h>

namespace gmt::preload {

// Bytes that the allocator has handed out, and that it has from the driver, on this device.
struct TorchTotals {
  uint64_t allocated, reserved;
};

// c10::Device as functions take it (c10/core/Device.h, PyTorch 2.11; since 1.6): a type and an
// index, a byte each.
struct TorchDevice {
  int8_t type, index;

  bool is_cuda() const { return type == 1; }
};

// size > 0: handed out; < 0: taken back.
void RecordBlock(uint64_t address, int64_t size, const TorchTotals& totals, TorchDevice device,
                 const void* caller);
void RecordOutOfMemory(int64_t size, const TorchTotals& totals, TorchDevice device,
                       const void* caller);

}  // namespace gmt::preload

#endif  // GMT_PRELOAD_TORCH_RECORD_BLOCK_H_
