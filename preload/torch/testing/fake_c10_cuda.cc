// libc10_cuda.so of the fake PyTorch: a reporting allocator, and streams.

#include "preload/torch/testing/fake_torch.h"

namespace {

thread_local int64_t current_stream = 0;
size_t allocated = 0;
constexpr size_t kReserved = size_t{2} << 20;

}  // namespace

void* c10::cuda::CUDAStream::stream() const { return reinterpret_cast<void*>(0x1000 * id); }
c10::cuda::CUDAStream c10::cuda::getCurrentCUDAStream(int8_t device) {
  return {{kCuda, device}, current_stream};
}

void FakeUseStream(int64_t id) { current_stream = id; }

void FakeAllocate(uint64_t address, int64_t size, int8_t type, int8_t index) {
  allocated += static_cast<size_t>(size);
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), size, allocated, kReserved,
                                   {type, index});
}
void FakeFree(uint64_t address, int64_t size, int8_t type, int8_t index) {
  allocated -= static_cast<size_t>(size);
  c10::reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), -size, allocated, kReserved,
                                   {type, index});
}
void FakeRunOut(int64_t size) {
  c10::reportOutOfMemoryToProfiler(size, allocated, kReserved, {c10::kCuda, 0});
}
