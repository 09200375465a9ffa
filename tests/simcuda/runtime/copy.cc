// Copies and memsets. With unified addressing the driver determines the kind of an address itself,
// so the direction given by the caller does not matter.
#include "tests/simcuda/runtime/runtime.h"

using sim::Address;
using sim::InContext;

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  return InContext([&] { return SIM_DRIVER(cuMemcpy, 4000)(Address(to), Address(from), size); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  return InContext(
      [&] { return SIM_DRIVER(cuMemcpyAsync, 4000)(Address(to), Address(from), size, stream); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size,
                                cudaStream_t stream) {
  return InContext([&] {
    return SIM_DRIVER(cuMemcpyPeerAsync, 4000)(Address(to), nullptr, Address(from), nullptr, size,
                                               stream);
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return InContext([&] {
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = Address(from);
    copy.srcPitch = from_pitch;
    copy.dstDevice = Address(to);
    copy.dstPitch = to_pitch;
    copy.WidthInBytes = width;
    copy.Height = height;
    return SIM_DRIVER(cuMemcpy2DAsync, 3020)(&copy, stream);
  });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t size, size_t offset,
                               cudaMemcpyKind) {
  return InContext([&] {
    CUdeviceptr address = 0;
    CUresult result = sim::SymbolAddress(symbol, &address);
    if (result != CUDA_SUCCESS) return result;
    return SIM_DRIVER(cuMemcpy, 4000)(address + offset, Address(from), size);
  });
}

cudaError_t cudaMemset(void* pointer, int value, size_t count) {
  return InContext([&] {
    return SIM_DRIVER(cuMemsetD8, 3020)(Address(pointer), static_cast<unsigned char>(value), count);
  });
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  return InContext([&] {
    return SIM_DRIVER(cuMemsetD8Async, 3020)(Address(pointer), static_cast<unsigned char>(value),
                                             count, stream);
  });
}
