// A tool that is preloaded beside the profiler. It counts calls and passes each on to the next
// definition, found in the customary way: dlsym(RTLD_NEXT).
//
// When the process ends, it writes {"cudaMalloc": N, ...} to the file that COUNTING_PRELOAD names.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<int> mallocs{0}, frees{0}, driver_allocs{0};

template <typename Function>
Function* Next(Function*, const char* name) {
  auto next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  if (next == nullptr) std::fprintf(stderr, "counting_preload: there is no %s\n", name);
  return next;
}

__attribute__((destructor)) void Write() {
  const char* path = std::getenv("COUNTING_PRELOAD");
  if (path == nullptr) return;
  char text[128];
  int length = std::snprintf(text, sizeof(text),
                             "{\"cudaMalloc\": %d, \"cudaFree\": %d, \"cuMemAlloc_v2\": %d}\n",
                             mallocs.load(), frees.load(), driver_allocs.load());
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || write(file, text, length) != length) std::perror("counting_preload");
  if (file >= 0) close(file);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t size) {
  static auto* next = Next(&cudaMalloc, "cudaMalloc");
  ++mallocs;
  return next != nullptr ? next(pointer, size) : cudaErrorSharedObjectSymbolNotFound;
}

cudaError_t cudaFree(void* pointer) {
  static auto* next = Next(&cudaFree, "cudaFree");
  ++frees;
  return next != nullptr ? next(pointer) : cudaErrorSharedObjectSymbolNotFound;
}

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t size) {
  static auto* next = Next(&cuMemAlloc_v2, "cuMemAlloc_v2");
  ++driver_allocs;
  return next != nullptr ? next(pointer, size) : CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
}

}  // extern "C"
#pragma GCC visibility pop
