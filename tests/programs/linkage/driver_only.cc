// Uses the driver without the runtime and finds its functions in one of several ways.
//
// Usage: driver_only WAY
//   dlsym       dlopen("libcuda.so.1") and dlsym of each exported name, as cuFFT does
//   five        cuGetProcAddress of CUDA 12: dlsym("cuGetProcAddress_v2"), five arguments
//   four        cuGetProcAddress of CUDA 11.3: dlsym("cuGetProcAddress"), four arguments
//   old         a program of CUDA 11.3, which asks the first cuGetProcAddress for cuGetProcAddress
//               of version 11030 and calls the result with four arguments
//   runtime     as the runtime does: a probe with an empty name, then cuGetProcAddress through
//               itself, for each ABI, and every function through the newest
//   per_thread  like five, with one default stream per thread
#include <dlfcn.h>

#include <cstring>

#include "tests/programs/linkage/call_sequences.h"

#undef cuGetProcAddress

namespace {

using Five = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
using Four = CUresult (*)(const char*, void**, int, cuuint64_t);

template <typename Function>
Function Symbol(void* driver, const char* name) {
  return reinterpret_cast<Function>(dlsym(driver, name));
}

void* Ask(Five get, const char* name, int version, cuuint64_t flags) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  CUresult result = get(name, &function, version, flags, &status);
  return result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS ? function : nullptr;
}

void* Ask(Four get, const char* name, int version) {
  void* function = nullptr;
  return get(name, &function, version, 0) == CUDA_SUCCESS ? function : nullptr;
}

bool Failed(const char* what) {
  std::fprintf(stderr, "driver_only: %s\n", what);
  return false;
}

bool Load(Driver* cuda, void* driver, const std::string& way) {
  auto five = Symbol<Five>(driver, "cuGetProcAddress_v2");
  auto four = Symbol<Four>(driver, "cuGetProcAddress");
  cuuint64_t flags = 0;
  if (way == "dlsym") {
    return cuda->Load([&](const char*, const char* symbol, int) { return dlsym(driver, symbol); });
  }
  if (way == "per_thread") {
    flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    cuda->alloc_async_name = "cuMemAllocAsync_ptsz";
    cuda->free_async_name = "cuMemFreeAsync_ptsz";
  }
  if (way == "old") {
    four = reinterpret_cast<Four>(Ask(four, "cuGetProcAddress", 11030));
    if (four == nullptr) return Failed("no cuGetProcAddress of 11030");
  }
  if (way == "four" || way == "old") {
    return cuda->Load(
        [&](const char* name, const char*, int version) { return Ask(four, name, version); });
  }
  if (way == "runtime") {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = five("", &function, 0, 0, &status);
    if (result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS && function != nullptr)
      return Failed("there is a function without a name");
    if (Ask(five, "cuGetProcAddress", 11030, 0) == nullptr)
      return Failed("no cuGetProcAddress of 11030");
    five = reinterpret_cast<Five>(Ask(five, "cuGetProcAddress", 12000, 0));
    if (five == nullptr) return Failed("no cuGetProcAddress of 12000");
    if (Ask(five, "cuMemAllocAsync", 11020, 2) == nullptr)
      return Failed("no cuMemAllocAsync for per-thread streams");
  }
  return cuda->Load(
      [&](const char* name, const char*, int version) { return Ask(five, name, version, flags); });
}

}  // namespace

int main(int argc, char** argv) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (argc != 2 || driver == nullptr) {
    std::fprintf(stderr, "driver_only: %s\n", argc != 2 ? "which way?" : dlerror());
    return 2;
  }
  Driver cuda;
  TruthLog truth;
  if (!Load(&cuda, driver, argv[1])) {
    Failed("a function was not found");
    return 2;
  }
  RunCalls(cuda, truth);
  return truth.Finish();
}
