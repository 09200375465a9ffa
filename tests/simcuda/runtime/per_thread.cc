// Functions called by programs compiled for a per-thread default stream, as far as they concern
// memory: the driver's own forms for such programs do the work. The other _ptsz and _ptds names are
// jumps to the plain ones (CMakeLists.txt, "stubs").
#include "tests/simcuda/runtime/runtime.h"

using sim::InContext;

cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t size, cudaStream_t stream) {
  sim::Arguments arguments(pointer, size, stream);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    if (size == 0) return CUDA_SUCCESS;
    return SIM_DRIVER_PER_THREAD(cuMemAllocAsync, 11020)(address, size, stream);
  });
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t size, cudaMemPool_t pool,
                                         cudaStream_t stream) {
  sim::Arguments arguments(pointer, size, pool, stream);
  sim::RuntimeCall call(__func__, arguments.data());
  return sim::StoreAddress(pointer, [&](CUdeviceptr* address) {
    return SIM_DRIVER_PER_THREAD(cuMemAllocFromPoolAsync, 11020)(address, size, pool, stream);
  });
}

cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  sim::Arguments arguments(pointer, stream);
  sim::RuntimeCall call(__func__, arguments.data());
  return InContext([&] {
    if (pointer == nullptr) return CUDA_SUCCESS;
    return SIM_DRIVER_PER_THREAD(cuMemFreeAsync, 11020)(sim::Address(pointer), stream);
  });
}

cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t executable, cudaStream_t stream) {
  return InContext([&] { return SIM_DRIVER_PER_THREAD(cuGraphLaunch, 10000)(executable, stream); });
}
