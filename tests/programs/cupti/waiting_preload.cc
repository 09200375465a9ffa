// Between a profiler and the runtime: a cudaFree that waits for the device before it frees, as the
// driver's own does with memory that is in use.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "tests/programs/cupti/unseen.h"

#pragma GCC visibility push(default)
extern "C" cudaError_t cudaFree(void* memory) {
  Unseen<decltype(&cuCtxSynchronize)>("libcuda.so.1", "cuCtxSynchronize")();
  return reinterpret_cast<decltype(&cudaFree)>(dlsym(RTLD_NEXT, "cudaFree"))(memory);
}
#pragma GCC visibility pop
