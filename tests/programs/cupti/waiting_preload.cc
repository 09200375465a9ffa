// A library preloaded between the profiler and the runtime. Its cudaFree synchronises the device
// before it frees, as the driver's does for memory that is in use.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "tests/programs/cupti/unhooked.h"

#pragma GCC visibility push(default)
extern "C" cudaError_t cudaFree(void* memory) {
  Unhooked<decltype(&cuCtxSynchronize)>("libcuda.so.1", "cuCtxSynchronize")();
  return reinterpret_cast<decltype(&cudaFree)>(dlsym(RTLD_NEXT, "cudaFree"))(memory);
}
#pragma GCC visibility pop
