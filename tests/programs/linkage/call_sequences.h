// A sequence of allocations and frees that is the same for every way in which a program can find
// CUDA's functions: device, stream-ordered and pinned memory, frees in a different order, and one
// failed allocation.
#ifndef TESTS_PROGRAMS_LINKAGE_CALL_SEQUENCES_H_
#define TESTS_PROGRAMS_LINKAGE_CALL_SEQUENCES_H_

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "tests/programs/truth_log.h"

// Called after the program's first allocation. A preloaded library may start the profiler now
// (starter.cc).
inline void Moment() {
  auto act = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "AtMoment"));
  if (act != nullptr) act();
}

// The functions of the runtime that RunCalls() needs, and the names of those whose names vary.
struct Runtime {
  cudaError_t (*malloc)(void**, size_t) = nullptr;
  cudaError_t (*free)(void*) = nullptr;
  cudaError_t (*malloc_async)(void**, size_t, cudaStream_t) = nullptr;
  cudaError_t (*free_async)(void*, cudaStream_t) = nullptr;
  cudaError_t (*host_alloc)(void**, size_t, unsigned int) = nullptr;
  cudaError_t (*free_host)(void*) = nullptr;
  const char* malloc_async_name = "cudaMallocAsync";
  const char* free_async_name = "cudaFreeAsync";

  // Finds every function with `find(name)`. Returns false if one is missing.
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

// The same for the driver.
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

  // Finds every function with `find(name without suffix, exported symbol, version)`. Returns false
  // if one is missing.
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

inline void RunCalls(const Runtime& cuda, TruthLog& truth) {
  void *first = nullptr, *second = nullptr, *ordered = nullptr, *pinned = nullptr, *none = nullptr;
  truth.Call("cudaMalloc", cuda.malloc(&first, 1000003));
  Moment();
  truth.Call("cudaMalloc", cuda.malloc(&second, 3 << 20));
  truth.Expect("cudaMalloc", cuda.malloc(&none, size_t{1} << 50), cudaErrorMemoryAllocation);
  truth.Call(cuda.malloc_async_name, cuda.malloc_async(&ordered, 70001, nullptr));
  truth.Call("cudaHostAlloc", cuda.host_alloc(&pinned, 4099, 0));
  truth.Call("cudaFree", cuda.free(first));
  truth.Call("cudaMalloc", cuda.malloc(&first, 1000003));
  truth.Call(cuda.free_async_name, cuda.free_async(ordered, nullptr));
  truth.Call("cudaFreeHost", cuda.free_host(pinned));
  truth.Call("cudaFree", cuda.free(second));
  truth.Call("cudaFree", cuda.free(first));
}

inline void RunCalls(const Driver& cuda, TruthLog& truth) {
  CUcontext context = nullptr;
  CUdeviceptr first = 0, second = 0, ordered = 0, none = 0;
  truth.Call("cuInit", cuda.init(0));
  truth.Call("cuDevicePrimaryCtxRetain", cuda.retain(&context, 0));
  truth.Call("cuCtxSetCurrent", cuda.set_current(context));
  truth.Call("cuMemAlloc_v2", cuda.alloc(&first, 1000003));
  Moment();
  truth.Call("cuMemAlloc_v2", cuda.alloc(&second, 3 << 20));
  truth.Expect("cuMemAlloc_v2", cuda.alloc(&none, size_t{1} << 50), CUDA_ERROR_OUT_OF_MEMORY);
  truth.Call(cuda.alloc_async_name, cuda.alloc_async(&ordered, 70001, nullptr));
  truth.Call("cuMemFree_v2", cuda.free(first));
  truth.Call("cuMemAlloc_v2", cuda.alloc(&first, 1000003));
  truth.Call(cuda.free_async_name, cuda.free_async(ordered, nullptr));
  truth.Call("cuMemFree_v2", cuda.free(second));
  truth.Call("cuMemFree_v2", cuda.free(first));
}

#endif  // TESTS_PROGRAMS_LINKAGE_CALL_SEQUENCES_H_
