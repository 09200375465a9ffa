// The same few allocations and frees for every way in which a program may have got hold of CUDA's
// functions: device, stream-ordered and pinned memory, frees in another order, one failure.
#ifndef TESTS_PROGRAMS_WAYS_IN_STORIES_H_
#define TESTS_PROGRAMS_WAYS_IN_STORIES_H_

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "tests/programs/told.h"

// When the program has taken its first memory: who came along with it may act now (starter.cc).
inline void Moment() {
  auto act = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "AtMoment"));
  if (act != nullptr) act();
}

// The functions of the runtime that a story needs, and the name each goes by.
struct Runtime {
  cudaError_t (*malloc)(void**, size_t) = nullptr;
  cudaError_t (*free)(void*) = nullptr;
  cudaError_t (*malloc_async)(void**, size_t, cudaStream_t) = nullptr;
  cudaError_t (*free_async)(void*, cudaStream_t) = nullptr;
  cudaError_t (*host_alloc)(void**, size_t, unsigned int) = nullptr;
  cudaError_t (*free_host)(void*) = nullptr;
  const char* malloc_async_name = "cudaMallocAsync";
  const char* free_async_name = "cudaFreeAsync";

  // Finds every function by `find(name)`; false when one is missing.
  template <typename Find>
  bool Load(Find find) {
    auto load = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find(name));
      if (function == nullptr) std::fprintf(stderr, "there is no %s\n", name);
      return function != nullptr;
    };
    return load(malloc, "cudaMalloc") && load(free, "cudaFree") &&
           load(malloc_async, "cudaMallocAsync") && load(free_async, "cudaFreeAsync") &&
           load(host_alloc, "cudaHostAlloc") && load(free_host, "cudaFreeHost");
  }
};

// The same of the driver.
struct Driver {
  CUresult (*init)(unsigned int) = nullptr;
  CUresult (*retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*set_current)(CUcontext) = nullptr;
  CUresult (*alloc)(CUdeviceptr*, size_t) = nullptr;
  CUresult (*free)(CUdeviceptr) = nullptr;
  CUresult (*alloc_async)(CUdeviceptr*, size_t, CUstream) = nullptr;
  CUresult (*free_async)(CUdeviceptr, CUstream) = nullptr;
  const char* alloc_async_name = "cuMemAllocAsync";
  const char* free_async_name = "cuMemFreeAsync";

  // Finds every function by `find(name without suffix, exported symbol, version)`.
  template <typename Find>
  bool Load(Find find) {
    auto load = [&](auto& function, const char* name, const char* symbol, int version) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
          find(name, symbol, version));
      if (function == nullptr) std::fprintf(stderr, "there is no %s\n", symbol);
      return function != nullptr;
    };
    return load(init, "cuInit", "cuInit", 2000) &&
           load(retain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000) &&
           load(set_current, "cuCtxSetCurrent", "cuCtxSetCurrent", 4000) &&
           load(alloc, "cuMemAlloc", "cuMemAlloc_v2", 3020) &&
           load(free, "cuMemFree", "cuMemFree_v2", 3020) &&
           load(alloc_async, "cuMemAllocAsync", alloc_async_name, 11020) &&
           load(free_async, "cuMemFreeAsync", free_async_name, 11020);
  }
};

inline void TellStory(const Runtime& cuda, Told& told) {
  void *first = nullptr, *second = nullptr, *ordered = nullptr, *pinned = nullptr, *none = nullptr;
  told.Call("cudaMalloc", cuda.malloc(&first, 1000003));
  Moment();
  told.Call("cudaMalloc", cuda.malloc(&second, 3 << 20));
  told.Expect("cudaMalloc", cuda.malloc(&none, size_t{1} << 50), cudaErrorMemoryAllocation);
  told.Call(cuda.malloc_async_name, cuda.malloc_async(&ordered, 70001, nullptr));
  told.Call("cudaHostAlloc", cuda.host_alloc(&pinned, 4099, 0));
  told.Call("cudaFree", cuda.free(first));
  told.Call("cudaMalloc", cuda.malloc(&first, 1000003));
  told.Call(cuda.free_async_name, cuda.free_async(ordered, nullptr));
  told.Call("cudaFreeHost", cuda.free_host(pinned));
  told.Call("cudaFree", cuda.free(second));
  told.Call("cudaFree", cuda.free(first));
}

inline void TellStory(const Driver& cuda, Told& told) {
  CUcontext context = nullptr;
  CUdeviceptr first = 0, second = 0, ordered = 0, none = 0;
  told.Call("cuInit", cuda.init(0));
  told.Call("cuDevicePrimaryCtxRetain", cuda.retain(&context, 0));
  told.Call("cuCtxSetCurrent", cuda.set_current(context));
  told.Call("cuMemAlloc_v2", cuda.alloc(&first, 1000003));
  Moment();
  told.Call("cuMemAlloc_v2", cuda.alloc(&second, 3 << 20));
  told.Expect("cuMemAlloc_v2", cuda.alloc(&none, size_t{1} << 50), CUDA_ERROR_OUT_OF_MEMORY);
  told.Call(cuda.alloc_async_name, cuda.alloc_async(&ordered, 70001, nullptr));
  told.Call("cuMemFree_v2", cuda.free(first));
  told.Call("cuMemAlloc_v2", cuda.alloc(&first, 1000003));
  told.Call(cuda.free_async_name, cuda.free_async(ordered, nullptr));
  told.Call("cuMemFree_v2", cuda.free(second));
  told.Call("cuMemFree_v2", cuda.free(first));
}

#endif  // TESTS_PROGRAMS_WAYS_IN_STORIES_H_
